"""Checks that the list of components and the license texts name all that a release holds.

    contents.py DIST

What the commands of the release hold is what Go wrote into them, and the libraries that are named here.
"""
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile

# The license texts of what is no module of Go, with words that each must have.
OTHERS = {
    "go": "The Go Authors", "highway": "Apache License", "libcxx": "LLVM Exceptions", "libcxxabi": "LLVM Exceptions", "libunwind": "LLVM Exceptions",
    "zig": "Zig contributors", "glibc": "GNU C Library", "mingw-w64": "MinGW",
}
# Texts that a module's own license sends to, and fonts.
INSIDE = {
    "github.com_golang_freetype": "The FreeType Project LICENSE", "codeberg.org_go-fonts_liberation": "SIL OPEN FONT LICENSE",
    "golang.org_x_image": "Bigelow & Holmes", "gonum.org_v1_plot": "Gonum",
}


def main(dist):
    dist = pathlib.Path(dist)
    modules = set()
    for command in sorted(dist.glob("*_*/rope-rewrite*")):
        lines = subprocess.run(["go", "version", "-m", command], check=True, capture_output=True, text=True).stdout
        modules |= set(re.findall(r"^\tdep\t(\S+)\t(\S+)", lines, re.M))
    problems = []
    if not modules:
        problems.append("no command was found")
    (bill,) = (dist / "out").glob("*.cdx.json")
    listed = {}
    for c in json.loads(bill.read_text())["components"]:
        listed[c["name"]] = c
        if not c.get("version"):
            problems.append(f"{c['name']} has no version in {bill.name}")
    for name, version in sorted(modules):
        if listed.get(name, {}).get("version") != version:
            problems.append(f"{name} {version} is not in {bill.name}")
    problems += [f"{name} is not in {bill.name}" for name in OTHERS if name not in listed]
    archives = sorted(p for p in (dist / "out").iterdir() if re.search(r"_(linux|darwin|windows)_.*(gz|zip)$|\.whl$", p.name))
    for archive in archives:
        texts, inside = contents(archive)
        if inside != [bill.read_bytes()]:
            problems.append(f"{archive.name} has not the list of components")
        for name, _ in sorted(modules):
            if name.replace("/", "_") not in texts:
                problems.append(f"{archive.name} has no license of {name}")
        for name, words in {**OTHERS, **INSIDE, "rope-rewrite": "License"}.items():
            if words.lower() not in texts.get(name, "").lower():
                problems.append(f"{archive.name}: the license of {name} does not say {words!r}")
    for p in problems:
        print(p)
    print(f"{len(modules)} modules and {len(OTHERS)} others in {bill.name}, and their licenses in {len(archives)} archives; {len(problems)} problems")
    return bool(problems)


def contents(archive):
    """The license texts of an archive by name, and its lists of components."""
    if archive.suffix == ".gz":
        with tarfile.open(archive) as tar:
            files = {m.name: tar.extractfile(m).read() for m in tar if wanted(m.name)}
    else:
        with zipfile.ZipFile(archive) as z:
            files = {n: z.read(n) for n in z.namelist() if wanted(n)}
    texts = {pathlib.PurePosixPath(n).stem: data.decode(errors="replace") for n, data in files.items() if "/licenses/" in n}
    return texts, [data for n, data in files.items() if n.endswith(".cdx.json")]


def wanted(name):
    return "/licenses/" in name or name.endswith(".cdx.json")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
