# shellcheck shell=bash
# What the runners beside this file share: our programs, built once, and
# servers that end with the script. Sourced from the repository's root.
#
#   build_programs                 the programs of this folder
#   need_quill                     `quill`, for its demo
#   free_port                      prints a port that was free just now
#   serve PROGRAM ARGUMENT...      starts a server in the background
#   serve_port PROGRAM ARGUMENT... starts one that prints its port; sets PORT
#   serve_quill demo ARGUMENT...   starts `quill demo`; sets PORT
#   await_port PORT                waits until somebody listens there

# The same target folder as the tests'.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}

_folder=$(mktemp -d)
_servers=()
stop_servers() {
  [[ ${#_servers[@]} -eq 0 ]] || kill "${_servers[@]}" 2>/dev/null || true
  rm -rf "$_folder"
}
trap stop_servers EXIT

build_programs() {
  need_connectconformance
  # The suite's messages are generated from its own module, at its own version.
  local suite folder
  suite=$(go version -m "$(command -v connectconformance)" | awk '$1 == "mod" { print $2 "@" $3 }')
  folder=$(go mod download -json "$suite" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
  export CONFORMANCE_PROTO=$folder/proto
  # The same versions as the tests', so that what both need is compiled once
  # and there is no second lock file to keep.
  cp Cargo.lock conformance/Cargo.lock
  cargo build --quiet --manifest-path conformance/Cargo.toml --workspace
}

need_quill() {
  # In CI the tests built it already, with the features of the whole workspace.
  [[ ${REQUIRE_EXTERNAL:-} == 1 && -x $CARGO_TARGET_DIR/debug/quill ]] ||
    cargo build --quiet --locked -p quill-cli
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

serve() {
  local name
  name=$(basename "$1")
  # Nobody is to read what the last server of this name wrote.
  rm -f "$_folder/$name.out"
  "$@" >"$_folder/$name.out" 2>"$_folder/$name.err" &
  _servers+=($!)
}

# Prints the first line of a file that a server writes, once it is there.
_await_line() {
  for _ in $(seq 300); do
    [[ ! -s $1 ]] || break
    sleep 0.1
  done
  head -n 1 "$1"
}

serve_port() {
  serve "$@"
  PORT=$(_await_line "$_folder/$(basename "$1").out")
  [[ -n $PORT ]] || { cat "$_folder/$(basename "$1").err" >&2; return 1; }
}

serve_quill() {
  rm -f "$_folder/quill.port"
  serve "$CARGO_TARGET_DIR/debug/quill" "$@" --listen 127.0.0.1:0 --port-file "$_folder/quill.port"
  PORT=$(_await_line "$_folder/quill.port")
  [[ -n $PORT ]] || { cat "$_folder/quill.err" >&2; return 1; }
}

await_port() {
  for _ in $(seq 300); do
    ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null || return 0
    sleep 0.1
  done
  echo "nobody listens on port $1" >&2
  cat "$_folder"/*.err >&2
  return 1
}

# Every case of grpc-go's interop client that needs no cloud.
go_cases=(
  empty_unary large_unary client_streaming server_streaming ping_pong empty_stream
  timeout_on_sleeping_server cancel_after_begin cancel_after_first_response
  status_code_and_message special_status_message custom_metadata
  unimplemented_method unimplemented_service pick_first_unary
  orca_per_rpc orca_oob rpc_soak channel_soak
)

# go_client_cases LABEL PORT [CASE...]: grpc-go's interop client against a
# server; a line for each case, then how many passed. Sets PASSED to these.
# Fails when one failed.
go_client_cases() {
  local label=$1 port=$2 case cases
  shift 2
  PASSED=()
  cases=("$@")
  [[ $# -gt 0 ]] || cases=("${go_cases[@]}")
  for case in "${cases[@]}"; do
    local options=()
    # Reports of load reach the case through a balancer of the client's own.
    [[ $case != orca_* ]] ||
      options=(-service_config_json '{"loadBalancingConfig":[{"test_backend_metrics_load_balancer":{}}]}')
    if timeout 40 grpc-interop-client -server_host 127.0.0.1 -server_port "$port" \
      -test_case "$case" "${options[@]}" >"$_folder/case" 2>&1; then
      echo "$case: ok"
      PASSED+=("$case")
    else
      echo "$case: FAILED"
      tail -n 5 "$_folder/case"
    fi
  done
  echo "$label: ${#PASSED[@]} of ${#cases[@]} cases passed"
  [[ ${#PASSED[@]} -eq ${#cases[@]} ]]
}

# Sets DESCRIPTORS: the demo's services and the interop service, as one
# descriptor set, for clients that need no generated code.
describe_services() {
  need_buf
  DESCRIPTORS=$_folder/services.binpb
  local folder
  for folder in crates/quill-cli/proto conformance/grpc-interop/proto; do
    # Two sets one after the other are one set.
    buf build "$folder" -o -#format=binpb
  done >"$DESCRIPTORS"
}
