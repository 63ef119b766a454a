"""Rewrites models, saves each rewrite again as other tools do, and asks `rope-rewrite validate` about the files.

    python save_again.py ROPE_REWRITE LIBRARY FOLDER_OF_MODELS

needs onnx and onnxruntime. It prints a table of verdicts, and ends with 1 if a file is neither SAME nor AS CLAIMED.
"""

import collections
import pathlib
import subprocess
import sys
import tempfile

import onnx
import onnxruntime


def resaved(source, target, _):
    onnx.save(onnx.load(source), target)


def shapes(source, target, _):
    onnx.save(onnx.shape_inference.infer_shapes(onnx.load(source)), target)


def external(source, target, _):
    onnx.save(onnx.load(source), target, save_as_external_data=True, location=pathlib.Path(target).name + ".data")


def by_runtime(level):
    def save(source, target, library):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        options.optimized_model_filepath = target
        options.log_severity_level = 4
        options.register_custom_ops_library(library)
        onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])

    return save


levels = onnxruntime.GraphOptimizationLevel
FORMS = {
    "saved by onnx": resaved,
    "shapes inferred": shapes,
    "external data": external,
    "runtime, disabled": by_runtime(levels.ORT_DISABLE_ALL),
    "runtime, basic": by_runtime(levels.ORT_ENABLE_BASIC),
}


def first_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "nothing"


def main(tool, library, folder):
    counts = {form: collections.Counter() for form in FORMS}
    wrong = 0
    for original in sorted(pathlib.Path(folder).glob("*/model.onnx")):
        for flags in (["--allow-partial"], ["--scaling", "linear:factor=2", "--allow-partial"]):
            with tempfile.TemporaryDirectory() as scratch:
                patched = str(pathlib.Path(scratch) / "patched.onnx")
                done = subprocess.run([tool, str(original), "-o", patched, *flags], capture_output=True, text=True)
                if done.returncode != 0:
                    continue
                plain = subprocess.run([tool, "validate", str(original), patched, "--length", "16"], capture_output=True, text=True)
                if plain.returncode == 1 and not plain.stdout or plain.returncode == 6:
                    print(f"left out: {original.parent.name} {' '.join(flags)}: {first_line(plain.stdout + plain.stderr)}", flush=True)
                    continue
                for form, save in FORMS.items():
                    target = str(pathlib.Path(scratch) / (form.replace(", ", "_").replace(" ", "_") + ".onnx"))
                    try:
                        save(patched, target, library)
                    except Exception as error:
                        counts[form]["not saved"] += 1
                        print(f"{form}: {original.parent.name} {' '.join(flags)}: {first_line(str(error))[:160]}", flush=True)
                        continue
                    said = subprocess.run([tool, "validate", str(original), target, "--length", "16"], capture_output=True, text=True)
                    verdict = "confirmed" if said.returncode == 0 else f"exit code {said.returncode}"
                    counts[form][verdict] += 1
                    if said.returncode != 0:
                        wrong += 1
                        what = " ".join(said.stdout.split())
                        at = what.find("The file")
                        print(f"{form}: {original.parent.name} {' '.join(flags)}: {what[at:at + 300] if at >= 0 else first_line(said.stdout + said.stderr)}", flush=True)
    print("\n| saved as | confirmed | not saved by the tool | others |\n|---|---|---|---|")
    for form, count in counts.items():
        others = sum(count.values()) - count["confirmed"] - count["not saved"]
        print(f"| {form} | {count['confirmed']} | {count['not saved']} | {others} |")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
