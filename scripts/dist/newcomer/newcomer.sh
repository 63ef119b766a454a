#!/bin/sh
# newcomer.sh RELEASE FOLDER [archive|wheel|clone]... prints what a newcomer sees in the first minutes, in a minimal Debian: from the
# archive of a release, from its wheel, from a clone of this repository's last commit. RELEASE is build/dist/out, FOLDER an export of
# SmolLM2 with genai_config.json. Needs root, debootstrap and a network.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
release=$(readlink -f "$1")
export_of=$(readlink -f "$2")
shift 2
roots=${BUILD:-$root/build}/dist/roots
debian=$roots/newcomer
home=$debian/home/newcomer

# Certificates are those of the machine that runs this; all else is Debian's.
inside() {
	sh "$here/../inside.sh" "$debian" env -i HOME=/home/newcomer TERM=dumb COLUMNS=80 PATH=/usr/sbin:/usr/bin:/sbin:/bin PIP_CERT=/root/certificates.pem \
		SSL_CERT_FILE=/root/certificates.pem PIP_PROGRESS_BAR=off PIP_ROOT_USER_ACTION=ignore DEBIAN_FRONTEND=noninteractive \
		sh -c "cd; [ ! -e .state ] || . ./.state; $1
		code=\$?; printf 'cd %s; PATH=%s\n' \"\$PWD\" \"\$PATH\" >~/.state; export -p | grep -E ' (GO|VIRTUAL_ENV)' >>~/.state; exit \$code" 2>&1
}

shown() { # a line as typed, in the state that the lines before left
	printf '$ %s\n' "$1"
	start=$(date +%s)
	{ inside "$1" || echo "(exit code $?)"; } | sed '$a\' # a last line ends where the next begins
	printf '# %s s\n' "$(($(date +%s) - start))"
}

begin() { # heading, packages of Debian, what lies in the home folder...
	printf '\n## %s\n' "$1"
	packages=$2
	shift 2
	sh "$here/../debian.sh" trixie "$roots/trixie"
	rm -rf "$debian"
	cp -a "$roots/trixie" "$debian"
	mkdir -p "$home/smollm2"
	cp -L "$export_of"/* "$home/smollm2/"
	cp -r "$here/ask.py" "$@" "$home/"
	cp /etc/resolv.conf "$debian/etc/"
	cp /etc/ssl/certs/ca-certificates.crt "$debian/root/certificates.pem"
	inside 'apt-get -qq update' >/dev/null
	begun=$(date +%s)
	printf '```\n'
	shown 'which cc gcc g++ clang make cmake go python3'
	shown 'ls'
	shown "apt-get -qq install --no-install-recommends $packages >/dev/null 2>&1"
}

reached() { printf '\n# %s s since the first line: %s.\n\n' "$(($(date +%s) - begun))" "$1"; }

rewritten() {
	shown 'rope-rewrite doctor'
	shown 'rope-rewrite smollm2 -o long --scaling yarn:factor=2'
	shown 'python3 ask.py long "Why is the sky blue?"'
	reached 'a patched folder runs in ONNX Runtime GenAI'
}

# The program of docs/start.md.
service() {
	mkdir "$home/service"
	sed -n '/^package main/,/^```/p' "$root/docs/start.md" | sed '/^```/d; s,"llama-long","../long",; s,MaxTokens: 16,MaxTokens: 32,' >"$home/service/main.go"
}

archive() {
	begin 'From the archive' 'python3-venv' "$release"/rope-rewrite_*_linux_amd64.tar.gz "$release/goproxy"
	shown 'mkdir rope && tar -xzf rope-rewrite_*.tar.gz -C rope --strip-components=1 && ls rope'
	shown 'export PATH=$HOME/rope:$PATH'
	shown 'rope-rewrite smollm2 -o long --scaling yarn:factor=2'
	shown 'python3 -m venv env && . env/bin/activate && pip install --quiet onnxruntime onnxruntime-genai tokenizers'
	rewritten
	service
	sed -i '/rope-rewrite\/customop"/a\	_ "github.com/rope-rewrite/rope-rewrite/customop/bundled" // the op library inside the program' "$home/service/main.go"
	shown 'apt-get -qq install --no-install-recommends golang-go gcc libc6-dev ca-certificates >/dev/null 2>&1'
	shown 'cat service/main.go'
	shown 'export GOPROXY=file://$HOME/goproxy,https://proxy.golang.org GONOSUMDB=github.com/rope-rewrite/*'
	shown 'cd service && go mod init service && go get github.com/rope-rewrite/rope-rewrite@v0.1.0 && go mod tidy && go build -tags bundled .'
	shown './service'
	reached 'a Go service streams text'
	shown 'cd && rope-rewrite validate smollm2 long | tail -n 4'
	printf '```\n'
}

wheel() {
	begin 'From the wheel' 'python3-venv' "$release"/rope_rewrite-*_x86_64.whl
	shown 'python3 -m venv env && . env/bin/activate && pip install --quiet ./rope_rewrite-*.whl onnxruntime onnxruntime-genai tokenizers'
	rewritten
	shown "python3 -c 'import rope_rewrite; print(rope_rewrite.library_path())'"
	printf '```\n'
}

clone() {
	begin 'From a clone' 'git golang-go g++ cmake make python3-venv python3-pip ca-certificates'
	rm -rf "$debian/root/rope-rewrite.git"
	git clone --quiet --bare "$root" "$debian/root/rope-rewrite.git"
	shown 'git clone --quiet /root/rope-rewrite.git && cd rope-rewrite && make demo'
	shown 'cd && python3 -m venv env && . env/bin/activate && pip install --quiet onnxruntime onnxruntime-genai tokenizers'
	shown 'export PATH=$HOME/rope-rewrite/build:$PATH'
	rewritten
	service
	shown 'cd service && go mod init service && go mod edit -require github.com/rope-rewrite/rope-rewrite@v0.1.0 -replace github.com/rope-rewrite/rope-rewrite=../rope-rewrite && go mod tidy && go build .'
	shown 'ROPE_OPS_LIBRARY=$HOME/rope-rewrite/build/librope_ops.so ./service'
	reached 'a Go service streams text'
	printf '```\n'
}

for part in ${*:-archive wheel clone}; do
	$part
done
rm -rf "$debian" # Go's sources in it would count as packages of this repository
