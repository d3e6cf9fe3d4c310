# The commands of this repository by their short names. `just` lists them.

_default:
    @just --list --unsorted

# Everything CI runs, or only the named steps
ci *steps:
    .ci/run {{ steps }}

# Format every crate of every workspace
fmt:
    for manifest in Cargo.toml conformance/Cargo.toml compare/Cargo.toml fuzz/Cargo.toml; do cargo fmt --manifest-path "$manifest" --all || exit 1; done

# Lints, as strict as in CI, and whether the fuzz targets still compile
lint:
    cargo clippy --workspace --all-targets --all-features -- -D warnings
    CUSTOM_LIBFUZZER_PATH=/nowhere/libfuzzer.a cargo check --manifest-path fuzz/Cargo.toml --locked

# Every test of the workspace
test *args:
    cargo test --workspace {{ args }}

# The API's documentation; a broken link is an error
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features

# Licences, banned crates, sources and advisories of the dependencies
deny *checks="advisories bans licenses sources":
    cargo deny --locked check --hide-inclusion-graph {{ checks }}

# Each feature by itself, and none
hack:
    cargo hack check --workspace --each-feature --no-dev-deps

# More clients of others, and gRPC's cases through proxies; needs Go, Node, Python, Java and Maven
interop-full *parts:
    conformance/interop-full {{ parts }}

# The Connect conformance suite in one mode, server or client; needs Go
conformance mode config="conformance/all-encodings.yaml" *args:
    conformance/run {{ mode }} {{ config }} {{ args }}

# Fuzzes one of the targets in fuzz/ for some seconds; needs cargo-fuzz and a nightly toolchain
fuzz target seconds="60":
    fuzz/run --seconds {{ seconds }} {{ target }}

# Attacks a live server and `quill call`, and watches them; `just attack --list` names what there is
attack *args:
    cargo build --workspace --bin quill --bin quill-attack
    target/debug/quill-attack {{ args }}

# Two million calls through clients with every layer, and what stays in memory; `just soak --calls N` for others
soak *args="--calls 2000000":
    cargo run -p quill-soak -- {{ args }}

# Benches; arguments go to criterion, as in `just bench --save-baseline main`
bench *args:
    cargo bench --workspace -- {{ args }}

# Instruction counts under callgrind; needs valgrind
instructions:
    cargo bench --workspace --bench 'iai_*'

# Frames beside frames that copy, in one run
compare-frames *args:
    compare/run frames {{ args }}

# quill bench beside h2load and ghz, by what a call costs each; wants h2load
compare-generators *args:
    compare/run generators {{ args }}

# Keys, limits, metrics and compression beside plain ones, in one run; wants valgrind
compare-middleware *args:
    compare/run middleware {{ args }}

# Servers and clients beside tonic, connectrpc, hyper, grpc-go and nghttpd, in one run; wants h2load, valgrind, strace and Go
compare-rpc *args:
    compare/run rpc {{ args }}

# throttle-kit beside other limiters, in one run; wants valgrind and redis-server
compare-throttle *args:
    compare/run throttle {{ args }}
