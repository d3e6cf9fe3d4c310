//! The languages that code is generated in, and who does it.

/// A language to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Language {
    /// Quill's own generator
    Rust,
    /// protoc-gen-es, for messages and Connect
    Ts,
    /// protoc-gen-go and protoc-gen-connect-go
    Go,
    /// protoc-gen-py and protoc-gen-connectrpc
    Python,
}

/// A program that generates code: a plugin of protoc and buf.
pub(crate) struct Plugin {
    pub(crate) program: &'static str,
    /// Options that it gets unless others are given.
    pub(crate) options: &'static str,
    /// How to get it.
    pub(crate) install: &'static str,
}

impl Language {
    /// The plugins of others; none for Rust.
    pub(crate) fn plugins(self) -> &'static [Plugin] {
        match self {
            Self::Rust => &[],
            Self::Ts => &[Plugin {
                program: "protoc-gen-es",
                options: "target=ts",
                install: "npm install --save-dev @bufbuild/protoc-gen-es, and \
                          npm install @bufbuild/protobuf @connectrpc/connect for the code",
            }],
            Self::Go => &[
                Plugin {
                    program: "protoc-gen-go",
                    options: "paths=source_relative",
                    install: "go install google.golang.org/protobuf/cmd/protoc-gen-go@latest",
                },
                Plugin {
                    program: "protoc-gen-connect-go",
                    options: "paths=source_relative",
                    install: "go install connectrpc.com/connect/cmd/protoc-gen-connect-go@latest",
                },
            ],
            Self::Python => &[
                Plugin {
                    program: "protoc-gen-py",
                    options: "",
                    install: "pip install protoc-gen-py, and pip install protobuf-py for the code",
                },
                Plugin {
                    program: "protoc-gen-connectrpc",
                    options: "",
                    install: "pip install protoc-gen-connectrpc, and pip install connectrpc for \
                              the code",
                },
            ],
        }
    }
}
