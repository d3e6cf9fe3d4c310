//! Schemas from files.

use crate::shop::{Serving, descriptor_set_file, protos};
use crate::support::scratch;

const ORDER: &str = r#"{"id":"9007199254740993","placedAt":"2024-05-01T00:00:00Z","prices":{"a":1.5},"note":{"@type":"type.googleapis.com/google.protobuf.Duration","value":"3s"}}"#;

#[test]
fn a_descriptor_set_is_a_schema() {
    let shop = Serving::shop();
    let set = descriptor_set_file(&["shop.proto"]);
    let call = shop
        .call("shop.v1.Shop/Place")
        .args(["--descriptor-set".as_ref(), set.as_os_str()]);
    assert_eq!(call.input(ORDER).run().lines(), [ORDER]);
}

#[test]
fn proto_files_and_folders_are_a_schema() {
    let shop = Serving::shop();
    let file = protos().join("shop/v1/shop.proto");
    let (file, folder) = (file.to_str().unwrap(), protos());
    let folder = folder.to_str().unwrap();
    for args in [
        &["--proto", file, "--import-path", folder][..],
        &["--proto", folder],
        &["--proto", file, "--proto", folder],
    ] {
        let call = shop.call("shop.v1.Shop/Place").args(args);
        assert_eq!(call.input(ORDER).run().lines(), [ORDER], "{args:?}");
    }
}

#[test]
fn what_is_wrong_with_a_schema_is_said() {
    let shop = Serving::shop();
    let broken = scratch("broken.proto");
    std::fs::write(&broken, "syntax = \"proto3\";\nmessage {\n").unwrap();
    let garbage = scratch("garbage.binpb");
    std::fs::write(&garbage, "what?").unwrap();
    let empty = scratch("empty");
    std::fs::create_dir(&empty).unwrap();
    let file = protos().join("shop/v1/shop.proto");
    for (flag, path, said) in [
        ("--proto", &broken, "broken.proto:2"),
        ("--proto", &file, "shop/v1/types.proto"),
        ("--proto", &file, "--import-path"),
        ("--proto", &empty, "no .proto file"),
        ("--proto", &scratch("none.proto"), "none.proto"),
        ("--descriptor-set", &garbage, "no descriptor set"),
        ("--descriptor-set", &scratch("none.binpb"), "none.binpb"),
    ] {
        let ran = shop
            .call("shop.v1.Shop/Place")
            .args([flag.as_ref(), path.as_os_str()])
            .run();
        assert!(ran.error(2).contains(said), "{flag} {path:?}: {ran:?}");
    }
}

#[test]
fn a_set_without_its_imports_is_told_how_to_get_them() {
    use buffa::Message;
    use buffa_descriptor::generated::descriptor::FileDescriptorSet;
    let shop = Serving::shop();
    let set = crate::shop::descriptor_set(&["shop.proto"]);
    let mut set = FileDescriptorSet::decode_from_slice(&set).unwrap();
    set.file
        .retain(|file| file.name.as_deref() == Some("shop/v1/shop.proto"));
    let path = scratch("lone.binpb");
    std::fs::write(&path, set.encode_to_vec()).unwrap();
    let ran = shop
        .call("shop.v1.Shop/Place")
        .args(["--descriptor-set".as_ref(), path.as_os_str()])
        .run();
    assert!(ran.error(2).contains("--include_imports"), "{ran:?}");
}
