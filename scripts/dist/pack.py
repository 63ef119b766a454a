"""Archives and wheels of what was built, whose bytes depend on their contents alone.

    pack.py VERSION SOURCES DIST OUT PLATFORM...
"""
import base64
import gzip
import hashlib
import io
import os
import pathlib
import sys
import tarfile
import time
import zipfile

EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
TAGS = {
    "linux_amd64": "manylinux_2_28_x86_64", "linux_arm64": "manylinux_2_28_aarch64",
    "darwin_amd64": "macosx_11_0_x86_64", "darwin_arm64": "macosx_11_0_arm64", "windows_amd64": "win_amd64",
}
EXECUTABLE = 0o755


def main(version, sources, dist, out, *platforms):
    sources, dist, out = map(pathlib.Path, (sources, dist, out))
    licenses = [(f"licenses/{p.name}", p.read_bytes(), 0o644) for p in sorted((dist / "licenses").iterdir())]
    bill = (dist / "rope-rewrite.cdx.json").read_bytes()
    (out / f"rope-rewrite_{version}.cdx.json").write_bytes(bill)
    manuals = [(str(p.relative_to(dist / "manuals")), p.read_bytes(), 0o644) for p in sorted((dist / "manuals").rglob("*")) if p.is_file()]
    texts = [("README.md", (sources / "scripts/dist/README.md").read_bytes(), 0o644)]
    texts += [(n, (sources / n).read_bytes(), 0o644) for n in ("LICENSE", "CHANGELOG.md")]
    texts += [(str(p.relative_to(sources)), p.read_bytes(), 0o644) for p in sorted((sources / "docs").rglob("*")) if p.is_file()]
    for platform in platforms:
        built = [(p.name, p.read_bytes(), EXECUTABLE) for p in sorted((dist / platform).iterdir())]
        files = built + texts + licenses + manuals + [("rope-rewrite.cdx.json", bill, 0o644)]
        folder = f"rope-rewrite_{version}_{platform}"
        if platform.startswith("windows"):
            write_zip(out / f"{folder}.zip", [(f"{folder}/{n}", data, mode) for n, data, mode in files])
        else:
            write_tar(out / f"{folder}.tar.gz", [(f"{folder}/{n}", data, mode) for n, data, mode in files])
        wheel(out, version, platform, built, sources, licenses, bill)
    every = [(str(p.relative_to(sources)), p.read_bytes(), 0o755 if os.access(p, os.X_OK) else 0o644) for p in sorted(sources.rglob("*")) if p.is_file()]
    write_tar(out / f"rope-rewrite-bundled_{version}.tar.gz", [(f"rope-rewrite/{n}", data, mode) for n, data, mode in every])
    proxy(out / "goproxy", version, sources, every)


def write_tar(path, files):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data, mode in files:
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = len(data), mode, EPOCH
            tar.addfile(info, io.BytesIO(data))
    with open(path, "wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=EPOCH) as z:
        z.write(raw.getvalue())


def write_zip(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data, mode in files:
            info = zipfile.ZipInfo(name, time.gmtime(EPOCH)[:6])
            info.external_attr, info.compress_type, info.create_system = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED, 3
            z.writestr(info, data)


def wheel(out, version, platform, built, sources, licenses, bill):
    """A wheel has the command, the op library and the package that calls them."""
    tag = f"py3-none-{TAGS[platform]}"
    info = f"rope_rewrite-{version}.dist-info"
    package = sources / "python" / "rope_rewrite"
    files = [(f"rope_rewrite/{p.name}", p.read_bytes(), 0o644) for p in sorted(package.iterdir()) if p.is_file()]
    files += [(f"rope_rewrite/{n}", data, mode) for n, data, mode in built]
    files += [(f"{info}/{n}", data, mode) for n, data, mode in licenses]
    files += [(f"{info}/sboms/rope-rewrite.cdx.json", bill, 0o644)]
    about = (sources / "python" / "README.md").read_text()
    metadata = f"""Metadata-Version: 2.4
Name: rope-rewrite
Version: {version}
Summary: Longer and better context for exported ONNX language models, proven
License-Expression: {license_of(sources)}
Requires-Python: >=3.9
Provides-Extra: onnxruntime
Requires-Dist: onnxruntime>=1.29; extra == "onnxruntime"
Description-Content-Type: text/markdown

{about}"""
    files += [
        (f"{info}/METADATA", metadata.encode(), 0o644),
        (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: rope-rewrite\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644),
        (f"{info}/entry_points.txt", b"[console_scripts]\nrope-rewrite = rope_rewrite:main\n", 0o644),
    ]
    record = "".join(f"{n},sha256={digest(data)},{len(data)}\n" for n, data, _ in files) + f"{info}/RECORD,,\n"
    write_zip(out / f"rope_rewrite-{version}-{tag}.whl", files + [(f"{info}/RECORD", record.encode(), 0o644)])


def proxy(folder, version, sources, files):
    """A folder that Go takes for a module proxy (GOPROXY=file://…): the sources with the op libraries inside."""
    module = (sources / "go.mod").read_text().split()[1]
    others = [str(p.parent.relative_to(sources)) + "/" for p in sources.rglob("go.mod") if p.parent != sources]
    own = [(n, data, mode) for n, data, mode in files if not any(n.startswith(o) for o in others)]
    at = folder / module / "@v"
    at.mkdir(parents=True)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH))
    (at / "list").write_text(f"v{version}\n")
    (at / f"v{version}.info").write_text(f'{{"Version":"v{version}","Time":"{stamp}"}}\n')
    (at / f"v{version}.mod").write_bytes((sources / "go.mod").read_bytes())
    write_zip(at / f"v{version}.zip", [(f"{module}@v{version}/{n}", data, 0o644) for n, data, _ in own])


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def license_of(sources):
    text = (sources / "LICENSE").read_text()
    return "MIT" if "MIT License" in text else "Apache-2.0" if "Apache License" in text else "LicenseRef-rope-rewrite"


if __name__ == "__main__":
    main(*sys.argv[1:])
