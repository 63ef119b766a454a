"""Reads the InferenceService of docs/scaling.md with the models of the package kserve: every key must be one that the model
of its place has, and its value of that model's type.

    kserve_yaml.py PAGE
"""
import re
import sys

import kserve
import kubernetes.client
import yaml


def walk(value, kind, place):
    """Checks a value against a generated model, and returns how many keys it has in all."""
    if kind.lower().startswith("list["):
        return sum(walk(v, kind[5:-1], f"{place}[{n}]") for n, v in enumerate(value))
    if kind.startswith(("dict(", "Dict[")):
        return len(value)
    model = getattr(kserve, kind, None) or getattr(kubernetes.client, kind, None)
    if model is None:
        types = {"str": str, "int": int, "bool": bool, "float": float, "object": object}
        if not isinstance(value, types[kind]):
            sys.exit(f"FAIL  {place} must be {kind}")
        return 0
    keys = {key: name for name, key in model.attribute_map.items()}
    count = 0
    for key, inner in value.items():
        if key not in keys:
            sys.exit(f"FAIL  {place}: {kind} has no {key}")
        count += 1 + walk(inner, model.openapi_types[keys[key]], f"{place}.{key}")
    return count


with open(sys.argv[1]) as f:
    service = yaml.safe_load(re.search(r"```yaml\n(.*?)```", f.read(), re.S)[1])
count = walk(service, "V1beta1InferenceService", service["kind"])
print(f"pass  {service['kind']} {service['metadata']['name']}: {count} keys, each known to kserve")
