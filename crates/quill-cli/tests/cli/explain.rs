//! `quill explain`, by arguments, files, standard input and a server.

use crate::shop::protos;
use crate::support::{Demo, Ran, quill, run, scratch};

fn explain(arguments: &[&str], stdin: &[u8]) -> Ran {
    let mut command = quill();
    command.arg("explain").args(arguments);
    run(command, stdin)
}

/// The lines without the column of bytes.
fn texts(ran: &Ran) -> Vec<&str> {
    ran.lines()
        .iter()
        .map(|line| line[38..].trim_end())
        .collect()
}

#[test]
fn bytes_come_in_every_form() {
    let file = scratch("body.bin");
    std::fs::write(&file, b"\x0a\x05hello").unwrap();
    let file = format!("@{}", file.display());
    for (arguments, stdin) in [
        (&["0a0568656c6c6f"][..], &b""[..]),
        (&["0a 05 68 65 6c 6c 6f"], b""),
        (&["CgVoZWxsbw=="], b""),
        (&["CgVoZWxsbw"], b""),
        (&[&file], b""),
        (&[], b"\x0a\x05hello"),
        (&["-"], b"0a0568656c6c6f\n"),
        (&["-"], b"CgVo\nZWxsbw==\n"),
        (&["--form", "binary"], b"\x0a\x05hello"),
    ] {
        let ran = explain(arguments, stdin);
        assert_eq!(texts(&ran), ["1:LEN     \"hello\""], "{arguments:?}");
    }
    for (arguments, said) in [
        (&["0a056"][..], "character 5 is no base64"),
        (
            &["--form", "hex", "0g"],
            "character 2 is no hexadecimal digit",
        ),
        (&["@none.bin"], "@none.bin"),
        (&["0a0568"], "4 bytes are missing"),
        (&["0801", "--type", "no.Type"], "no type no.Type"),
        (&["0801", "--encoding", "lzw"], "gzip"),
        (&["0801", "--as", "what"], "envelopes"),
    ] {
        let ran = explain(arguments, b"");
        assert!(ran.error(2).contains(said), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn a_schema_gives_names() {
    let folder = protos();
    let folder = folder.to_str().unwrap();
    let types = explain(&["--proto", folder, "--list-types"], b"");
    assert!(types.lines().contains(&"shop.v1.Order"), "{types:?}");
    assert!(!types.stdout.contains("Entry"), "{types:?}");
    let arguments = ["0807", "--proto", folder, "--type", "shop.v1.Order"];
    let ran = explain(&arguments, b"");
    assert_eq!(texts(&ran), ["1:VARINT  id = 7"]);
    let ran = explain(&[&arguments[..], &["--json"]].concat(), b"");
    assert_eq!(ran.lines(), [r#"{"id":"7"}"#]);
}

#[test]
fn a_server_gives_the_schema() {
    let demo = Demo::start();
    let url = format!("http://{}", demo.address);
    let types = explain(&["--server", &url, "--list-types"], b"");
    assert!(types.lines().contains(&"echo.v1.EchoRequest"), "{types:?}");
    let frames = b"\x07\x01\x0a\x05hello\x00\x02";
    let arguments = ["--server", &url, "--type", "echo.v1.EchoResponse"];
    let ran = explain(&arguments, frames);
    let said = [
        "frame of Quill, DATA, 7 bytes",
        "1:LEN     message = \"hello\"",
        "frame of Quill, END_STREAM, 0 bytes",
    ];
    assert_eq!(texts(&ran), said);
    let ran = explain(&["--server", "http://127.0.0.1:1"], frames);
    assert_eq!(ran.code, Some(3), "{ran:?}");
}

/// 1 GiB, and a million messages, pass through a few megabytes.
#[cfg(target_os = "linux")]
#[test]
fn large_inputs_take_little_memory() {
    use std::io::Write as _;
    use std::process::Stdio;

    let large = {
        let length = 1 << 20;
        let mut message = vec![0x0a];
        buffa::encoding::encode_varint(length, &mut message);
        message.resize(message.len() + length as usize, 0xff);
        let count = u32::try_from(message.len()).unwrap();
        [&[0][..], &count.to_be_bytes(), &message].concat()
    };
    let small = b"\x00\x00\x00\x00\x04\x0a\x02hi".repeat(1000);
    for (piece, times) in [(large, 1024), (small, 1000)] {
        let mut child = quill()
            .arg("explain")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        for _ in 0..times {
            stdin.write_all(&piece).unwrap();
        }
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        drop(stdin);
        assert!(child.wait().unwrap().success());
        let most = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        let most: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(most < 64 * 1024, "{most} KiB");
    }
}

/// A full disk is not the fault of the bytes, and no --form helps.
#[cfg(target_os = "linux")]
#[test]
fn a_full_output_is_said_to_be_one() {
    let full = std::fs::File::create("/dev/full").unwrap();
    let ran = quill().args(["explain", "0a00"]).stdout(full).output();
    let ran = ran.unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{said}");
    assert!(said.starts_with("quill: standard output: "), "{said}");
    assert!(!said.contains("--form"), "{said}");
}
