#!/usr/bin/env python3
"""Writes ../operators.txt: which version of the standard operators changed which of them.

    pip install onnx==1.23.2 && python3 operators.py

Only signatures are compared here. What a version changed only in what an operator computes
(a default with the same name, a rule in its text) is read in the changelog by a person and
stands in ../changes.go; `python3 operators.py words 20` prints what version 20 says in other
words than the version before, for that person to read.
"""
import difflib
import pathlib
import re
import sys

import onnx
import onnx.defs
import onnx.helper

OLDEST, NEWEST = 7, 26  # what ONNX Runtime 1.31 runs: what it refuses cannot be tried

HEAD = f"""\
# Written by testdata/operators.py from the Python package onnx {onnx.__version__}.
#
# First the versions of the standard operators that models are raised from and to, each with
# the version of the file format that came with it. Then every operator with the versions
# that say something of it, from the one that was in force at {OLDEST} on. A mark says how a
# version differs from the one before:
#
#   13   types of elements were added, or words changed
#   13+  attributes with a default, or optional inputs or outputs, were added
#   13!  anything else in the signature: a node may not be read as before
#   13-  the operator was taken out
#
# Behind a colon stand how many inputs and how many outputs a node has, where the version before does
# not say the same: 13:1-2,1- has one input or two, and any number of outputs above zero.
#
# What Raise does at a step stands in changes.go; all steps with ! are named there, and those
# of the others that changed what the operator computes.
"""


def attributes(schema):
    return {
        name: (str(a.type), a.required, str(onnx.helper.get_attribute_value(a.default_value)) if a.default_value.name else None)
        for name, a in schema.attributes.items()
    }


def optional(port):
    return port.option != onnx.defs.OpSchema.FormalParameterOption.Single


def ports_kept(before, after):
    """No port was removed, moved, or made necessary; what was added may be left out."""
    if len(after) < len(before) or any(not optional(p) for p in after[len(before):]):
        return False
    return all(optional(q) or not optional(p) for p, q in zip(before, after))


def types_kept(before, after):
    return all(set(p.types) <= set(q.types) for p, q in zip(before, after))


def mark(before, after):
    if after.deprecated:
        return "-"
    a, b = attributes(before), attributes(after)
    added = set(b) - set(a)
    if (
        any(a[name] != b.get(name) and not (name in b and a[name][1] and b[name][0] == a[name][0]) for name in a)
        or any(b[name][1] for name in added)
        or not all(ports_kept(x, y) and types_kept(x, y) for x, y in ((before.inputs, after.inputs), (before.outputs, after.outputs)))
    ):
        return "!"
    if added or len(after.inputs) > len(before.inputs) or len(after.outputs) > len(before.outputs):
        return "+"
    return ""


def count(low, high):
    if high > 1 << 16:
        return f"{low}-"
    return str(low) if low == high else f"{low}-{high}"


def counts(schema):
    return ":" + count(schema.min_input, schema.max_input) + "," + count(schema.min_output, schema.max_output)


def histories():
    found = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= NEWEST:
            found.setdefault(schema.name, []).append(schema)
    for name in sorted(found):
        versions = sorted(found[name], key=lambda s: s.since_version)
        older = [s for s in versions if s.since_version <= OLDEST]
        yield name, older[-1:] + [s for s in versions if s.since_version > OLDEST]


def table():
    lines = [HEAD]
    formats = {}
    for _, ir, version, *_ in onnx.helper.VERSION_TABLE:
        formats[version] = min(ir, formats.get(version, ir))
    lines += [f"{v} {formats[v]}" for v in range(OLDEST, NEWEST + 1)]
    lines.append("")
    for name, versions in histories():
        first = str(versions[0].since_version) + ("-" if versions[0].deprecated else "") + counts(versions[0])
        steps = [f"{b.since_version}{mark(a, b)}" + (counts(b) if counts(a) != counts(b) else "") for a, b in zip(versions, versions[1:])]
        lines.append(" ".join([name, first] + steps))
    return "\n".join(lines) + "\n"


def sentences(schema):
    texts = [schema.doc or ""]
    for name in sorted(schema.attributes):
        texts += ["attribute " + name, schema.attributes[name].description]
    for port in [*schema.inputs, *schema.outputs]:
        texts += ["port " + port.name, port.description]
    return [re.sub(r"\s+", " ", s).strip() for text in texts for s in re.split(r"(?<=[.\n])\s+", text) if s.strip()]


def words(version):
    for name, versions in histories():
        for a, b in zip(versions, versions[1:]):
            if b.since_version != version:
                continue
            print(f"## {name} {a.since_version} -> {b.since_version}")
            for line in difflib.unified_diff(sentences(a), sentences(b), lineterm="", n=0):
                if not line.startswith(("---", "+++", "@@")):
                    print(line)


if __name__ == "__main__":
    if sys.argv[1:2] == ["words"]:
        words(int(sys.argv[2]))
    else:
        (pathlib.Path(__file__).parent.parent / "operators.txt").write_text(table())
