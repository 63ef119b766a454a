#!/bin/sh
# newcomer.sh ARCHIVE FOLDER prints what a newcomer sees in the first ten minutes: a minimal Debian without compilers, the
# archive of a release for linux_amd64, and FOLDER, an export with its tokenizer. Needs root, debootstrap and a network.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
archive=$(readlink -f "$1")
export_of=$(readlink -f "$2")
debian=${BUILD:-$here/../../build}/dist/roots/trixie
sh "$here/debian.sh" trixie "$debian"
home=$debian/home/newcomer
rm -rf "$home"
mkdir -p "$home/smollm2"
cp "$archive" "$home/"
cp -L "$export_of"/* "$home/smollm2/"
cp /etc/resolv.conf "$debian/etc/"
# The tool for environments of Python, as "apt-get install python3-venv" brings it.
cp /etc/ssl/certs/ca-certificates.crt "$debian/root/certificates.pem"
inside() { sh "$here/inside.sh" "$debian" env -i HOME=/home/newcomer TERM=dumb COLUMNS=80 PATH=/usr/sbin:/usr/bin:/sbin:/bin PIP_CERT=/root/certificates.pem PIP_PROGRESS_BAR=off PIP_DISABLE_PIP_VERSION_CHECK=1 DEBIAN_FRONTEND=noninteractive sh -c "cd; $1" 2>&1; }
shown() { # a line as typed, run in the shell's state so far
	printf '$ %s\n' "$1"
	start=$(date +%s)
	inside "[ ! -e env/bin/activate ] || . env/bin/activate; PATH=\$HOME/rope:\$PATH; $1" || echo "(exit code $?)"
	printf '# %s s\n' "$(($(date +%s) - start))"
}
inside 'apt-get -qq update && apt-get -qq install --no-install-recommends python3-venv' >/dev/null
shown 'which cc gcc g++ clang make cmake go'
shown 'ls'
shown 'mkdir rope && tar -xzf rope-rewrite_*.tar.gz -C rope --strip-components=1 && ls rope'
shown 'rope-rewrite --help | head -n 24'
shown 'rope-rewrite inspect smollm2/model.onnx'
shown 'rope-rewrite smollm2 -o long --scaling yarn:factor=2'
shown 'python3 -m venv env && . env/bin/activate && pip install --quiet onnxruntime'
shown 'rope-rewrite doctor'
shown 'rope-rewrite smollm2 -o long --scaling yarn:factor=2 --dry-run'
shown 'rope-rewrite smollm2 -o long --scaling yarn:factor=2'
shown 'rope-rewrite inspect long/model.onnx --recipe'
shown 'rope-rewrite validate smollm2/model.onnx long/model.onnx'
shown 'rope-rewrite eval smollm2 --task passkey --lengths 1k,2k --samples 2 --depths 50% --method none --method "scaling yarn:factor=2"'
