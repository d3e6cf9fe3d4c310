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
  *":$TOOLS/bin:"*) ;;
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
need_connectconformance() {
  need_go connectconformance connectrpc.com/conformance/cmd/connectconformance@v1.0.7
}
need_grpc_health_probe() {
  need_go grpc-health-probe github.com/grpc-ecosystem/grpc-health-probe@v0.4.63
}
need_grpcurl() { need_go grpcurl github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4; }
need_h2spec() { need_go h2spec github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible; }
need_hpack() { need_pip hpack==4.2.0; }
# A library: no program of its package could tell that it is there.
need_libnghttp2() {
  python3 -c 'import ctypes; ctypes.CDLL("libnghttp2.so.14")' 2>/dev/null ||
    need_apt libnghttp2.so.14:libnghttp2-14
}
need_redis() { need_apt redis-server:redis-server redis-sentinel:redis-sentinel; }
need_shellcheck() { need_apt shellcheck:shellcheck; }
