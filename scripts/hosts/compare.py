"""Compares what a host in another language left beside the cases.

    compare.py CASES FILES "NAME AND VERSION" [TARGET]

FILES.bin has a case's outputs, one after the other; or FILES.error has the reason why there are none, and
FILES.original is there if the host cannot load the unpatched model either. TARGET is that of the models: onnx, or
contrib, which leaves out calls with padding.
"""
import os
import sys

from cases import Host, read_all, tensor
from targets import padded


def main(cases, files, name, target=None):
    host = Host(name)
    for case in read_all(cases):
        base = os.path.join(case.folder, files)
        host.check(case, lambda case: (outputs(case, base, target), None), lambda case: refuse(base + ".original"), real=target is not None)
    host.finish()


def outputs(case, base, target):
    if target is not None:
        case.target(target)
    refuse(base + ".error")
    with open(base + ".bin", "rb") as f:
        data = f.read()
    result, at = [], 0
    for call in case.calls:
        if target == "contrib" and padded(call["inputs"]):
            result.append(None)
            continue
        got = {}
        for name, like in call["outputs"].items():
            got[name] = tensor(data, {"type": str(like.dtype), "shape": like.shape, "at": at})
            at += like.nbytes
        result.append(got)
    return result


def refuse(path):
    if os.path.exists(path):
        with open(path) as f:
            raise RuntimeError(f.read())


if __name__ == "__main__":
    main(*sys.argv[1:])
