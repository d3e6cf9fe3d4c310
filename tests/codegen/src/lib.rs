//! What quill-codegen generates, compiled and called.

pub mod proto {
    //! Every generated package, in the modules of its name.
    include!(concat!(env!("OUT_DIR"), "/all-packages.rs"));
}

pub mod runtime;
