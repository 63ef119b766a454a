"""Times SmolLM2 in several programs by turns and writes what each took.

    turns.py WORK ROPE_REWRITE OUT.json [--lengths 512,4096,8128] [--threads 1,2] [--rounds 3] [--tokens 24] [--minutes 55]
             [--only WORD,...]

Each time is that of a new process, which reads its model, computes a prompt of LENGTH tokens and then single ones. A round
has every contestant once, in an order that moves on with the rounds. After --minutes none is started any more. WORK is
what bench-peers.sh made. OUT.json has every single time, with the machine's load before it.
"""
import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CAPACITY = 8192


def ours(weights, cache):
    def command(a, length, threads):
        model = os.path.join(a.work, "ours", weights, f"{cache}.onnx")
        return [a.rewrite, "bench-probe", model, "--length", str(length), "--tokens", str(a.tokens), "--threads", str(threads)]

    return {"program": "rope-rewrite", "weights": weights, "cache": cache, "command": command}


def genai(weights):
    def command(a, length, threads):
        return [sys.executable, os.path.join(HERE, "genai.py"), os.path.join(a.work, f"genai-{weights}"), *map(str, (length, a.tokens, threads, CAPACITY))]

    return {"program": "ONNX Runtime GenAI", "weights": weights, "cache": "float32", "command": command}


def llama(weights, cache="f16"):
    def command(a, length, threads):
        model = os.path.join(a.work, "gguf", weights + ".gguf")
        return [sys.executable, os.path.join(HERE, "llama.py"), os.path.join(a.work, "llama"), "time", model, cache, *map(str, (length, a.tokens, threads, CAPACITY))]

    return {"program": "llama.cpp", "weights": weights, "cache": {"f16": "float16"}.get(cache, cache), "command": command}


CONTESTANTS = [*(ours(w, c) for w in ("int4", "float32") for c in ("float32", "float16", "int8")),
               *map(genai, ("int4", "float32")), *map(llama, ("q4_0", "q8_0", "f16", "f32"))]
SLOW = [llama("q4_0", "q8_0")]  # a prompt of 8,128 tokens takes it minutes: only --only has it


def name(contestant):
    return " ".join(contestant[part] for part in ("program", "weights", "cache"))


def measure(command):
    """Seconds of the clock and of the processor. The standard input stays open: rope-rewrite's probe ends with it."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        text = process.stdout.read()
        process.stdin.close()
        if process.wait() != 0:
            log.seek(0)
            sys.exit(f"{' '.join(command)}: exit status {process.returncode}\n{''.join(log.readlines()[-20:])}")
    seen = json.loads(text.strip().splitlines()[-1])
    if "first_token_seconds" in seen:
        return {to: seen[of] for to, of in (("prefill", "first_token_seconds"), ("prefill_cpu", "first_token_cpu_seconds"),
                                            ("token", "token_seconds"), ("token_cpu", "token_cpu_seconds"))}
    return {key: seen[key] for key in ("prefill", "prefill_cpu", "token", "token_cpu")}


def versions(a):
    import onnxruntime
    import onnxruntime_genai

    with open(os.path.join(a.work, "llama", "_nlcBuildMetadata.json")) as file:
        llama_cpp = json.load(file)["buildOptions"]["llamaCpp"]["release"]
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    return {"rope-rewrite": commit, "llama.cpp": llama_cpp, "ONNX Runtime": onnxruntime.__version__, "ONNX Runtime GenAI": onnxruntime_genai.__version__}


def processor():
    try:
        with open("/proc/cpuinfo") as file:
            return re.search(r"model name\s*: (.*)", file.read())[1]
    except (OSError, TypeError):
        return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work")
    parser.add_argument("rewrite")
    parser.add_argument("out")
    parser.add_argument("--lengths", default="512,4096,8128")
    parser.add_argument("--threads", default=",".join(map(str, sorted({1, os.cpu_count()}))))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--minutes", type=float, default=55)
    parser.add_argument("--only", default="", help="contestants with any of these words in their names")
    a = parser.parse_args()
    lengths, threads = ([int(n) for n in text.split(",")] for text in (a.lengths, a.threads))
    if max(lengths) + a.tokens > CAPACITY:
        sys.exit(f"turns.py: {max(lengths)} tokens and {a.tokens} after them do not fit into the caches of {CAPACITY}")
    contestants = [c for c in CONTESTANTS + SLOW if any(word in name(c) for word in a.only.split(","))] if a.only else CONTESTANTS
    if not contestants:
        sys.exit(f"turns.py: no contestant has {a.only} in its name; there are: {', '.join(map(name, CONTESTANTS + SLOW))}")
    result = {"cpu": processor(), "cores": os.cpu_count(), "versions": versions(a), "tokens": a.tokens, "runs": []}
    end = time.monotonic() + 60 * a.minutes
    for turn in range(a.rounds):
        order = contestants[turn % len(contestants) :] + contestants[: turn % len(contestants)]
        for length in lengths:
            for count in threads:
                for c in order:
                    if time.monotonic() > end:
                        print(f"{a.minutes:g} minutes are over: the rest is left out", file=sys.stderr)
                        return
                    load = os.getloadavg()[0]
                    run = {**{k: c[k] for k in ("program", "weights", "cache")}, "length": length, "threads": count, "round": turn + 1, "load": load,
                           **measure(c["command"](a, length, count))}
                    result["runs"].append(run)
                    with open(a.out, "w") as file:
                        json.dump(result, file, indent=1)
                    print(f"{turn + 1}/{a.rounds} {name(c)}, {length} tokens, {count} threads: {run['prefill']:.2f} s, {1e3 * run['token']:.1f} ms a token (load {load:.1f})", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
