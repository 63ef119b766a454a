#!/usr/bin/env python3
"""Writes ruler.json: ten samples of each of RULER's tasks by the authors' own generator, with what it drew, and its
score of answers that are right, partly right and wrong.

    git clone https://github.com/NVIDIA/RULER && git -C RULER checkout c3f5e3b
    python cmd/internal/evaluation/task/testdata/make_ruler.py RULER

The generator's files run unchanged (scripts/data/synthetic/*.py). What they load is given to them: essays, the two
sets of questions and a list of words for longer texts than these are made here, since RULER downloads them; sentences are split by a regular expression in the place
of nltk's data; tokens are counted by SmolLM2's tokenizer. Every draw is read off while the files run. Of each task one
text is written, of the others the SHA-256, without the blanks that the generator leaves where no sentence of an essay
stands before a needle or behind it.
Made with numpy 2.4, scipy 1.16, tokenizers 0.23, wonderwords 3.0, tqdm 4.67.
"""

import hashlib
import importlib.util
import json
import pathlib
import random
import re
import shutil
import sys
import tempfile
import types

import tokenizers
import yaml

here = pathlib.Path(__file__).parent
root = here.parents[4]
SAMPLES, SEED = 10, 42
LENGTHS = {"cwe": 4096}  # tokens; else
LENGTH = 1024
ESSAY = " ".join(
    f"The {a} who {v} {t} knows more about {s} than the one who {w}. Some say that {s} is a matter of luck! Is it? I have met a {a} {t} and asked."
    for s in ("gardens", "letters", "boats", "bread", "maps", "songs")
    for a, v, w in (("farmer", "waits", "runs"), ("clerk", "counts", "guesses"), ("sailor", "listens", "shouts"))
    for t in ("in the morning", "after the rain", "in winter")
)


class Recorded:
    """The module random, with a list of what it drew."""

    def __init__(self, log: list):
        self.log = log

    def __getattr__(self, name: str):
        return getattr(random, name)

    def sample(self, population, k):
        out = random.sample(population, k)
        self.log.append(("sample", list(out)))
        return out

    def Random(self, seed):  # noqa: N802
        rng, log = random.Random(seed), self.log

        class Shuffles:
            def shuffle(self, items):
                before = list(items)
                rng.shuffle(items)
                log.append(("shuffle", before, list(items)))

        return Shuffles()


def made_questions(folder: pathlib.Path) -> None:
    """Two sets of questions in the forms that RULER reads: SQuAD's and HotpotQA's."""
    towns = [f"{a}{b}" for a in ("Alder", "Birch", "Cedar", "Elm", "Fir", "Hazel") for b in ("ton", "ville", "ford", "wick", "dale")]
    paragraph = lambda t, i: f"{t} is a town of {1000 + 37 * i} people. It lies on a river, and was founded in {1700 + i}."
    squad = {"data": [{"paragraphs": [{"context": paragraph(t, i), "qas": [
        {"question": f"When was {t} founded?", "is_impossible": False, "answers": [{"text": f"{1700 + i}"}, {"text": f"in {1700 + i}"}]},
        {"question": f"Who founded {t}?", "is_impossible": True, "answers": []},
    ]} for i, t in list(enumerate(towns))[k : k + 5]]} for k in range(0, len(towns), 5)]}
    hotpot = [{"question": f"When was the home town of the author of Book {i} founded?", "answer": f"{1700 + i}", "context": [
        [f"Book {i}", [f"Book {i} is a novel.", f" Its author is Writer {i}."]], [f"Writer {i}", [f"Writer {i} was born in {t}."]], [t, [paragraph(t, i)]],
    ]} for i, t in enumerate(towns)]
    (folder / "json/squad.json").write_text(json.dumps(squad))
    (folder / "json/hotpotqa.json").write_text(json.dumps(hotpot))
    (folder / "json/english_words.json").write_text(json.dumps({i: f"word{i}" for i in range(10000)}))  # for an estimate alone
    (folder / "json/PaulGrahamEssays.json").write_text(json.dumps({"text": ESSAY}))


def stubs(log: list) -> None:
    """The modules that the generator imports and that cannot be had."""
    counter = tokenizers.Tokenizer.from_file(str(root / "testdata/smollm2/tokenizer.json"))
    counting = types.SimpleNamespace(text_to_tokens=lambda text: counter.encode(text, add_special_tokens=False).ids)
    sys.modules["tokenizer"] = types.ModuleType("tokenizer")
    sys.modules["tokenizer"].select_tokenizer = lambda kind, path: counting

    def sent_tokenize(text: str) -> list[str]:
        sentences = re.findall(r"\S.*?(?:[.!?](?=\s)|$)", text, re.S)
        log.append(("sentences", sentences))
        return sentences

    sys.modules["nltk"], sys.modules["nltk.tokenize"] = types.ModuleType("nltk"), types.ModuleType("nltk.tokenize")
    sys.modules["nltk.tokenize"].sent_tokenize = sent_tokenize


def load(path: pathlib.Path, name: str, arguments: dict) -> types.ModuleType:
    sys.argv = [str(path)] + [x for k, v in arguments.items() for x in (f"--{k}", str(v))]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def record(module: types.ModuleType, log: list, names: list[str]) -> None:
    """Notes what functions of a module return."""
    for name in names:
        def wrapped(*args, function=getattr(module, name), name=name, **kwargs):
            out = function(*args, **kwargs)
            log.append((name, out, args, kwargs))
            return out
        setattr(module, name, wrapped)


def of(log: list, kind: str) -> list:
    return [entry[1] for entry in log if entry[0] == kind]


def drawn_niah(log: list, args: types.SimpleNamespace, _) -> dict:
    drawn, samples = of(log, "generate_random"), of(log, "sample")
    keys, values = [], []
    for i in range(args.num_needle_k):
        group = drawn[i * (1 + args.num_needle_v) : (i + 1) * (1 + args.num_needle_v)]
        keys.append(group[0])
        values.append(group[1:])
    rest = drawn[args.num_needle_k * (1 + args.num_needle_v) :]
    before, after = next(entry[1:] for entry in log if entry[0] == "shuffle")
    order = [before.index(x) for x in after]
    asked = samples[-1]
    out = {"keys": keys, "values": values, "asked": [asked]}
    if args.type_haystack == "essay":
        sentences = of(log, "sentences")[-1]
        places = sorted(int(len(sentences) * (d / 100)) for d in samples[0])
        return out | {"sentences": len(sentences), "last": sentences[-1], "order": order, "places": places}
    # Needles are inserted from the last place to the first.
    out |= {"order": order[::-1], "places": sorted(samples[0])}
    if args.type_haystack == "needle":
        return out | {"others": [rest[i : i + 2] for i in range(0, len(rest), 2)]}
    return out | {"lines": args.lines}


def drawn_chain(log: list, lines: int) -> dict:
    names, chains = of(log, "generate_chains")[-1]
    places = [sorted(x) for x in of(log, "sample")]
    return {"lines": lines, "chains": names, "values": [c[0].split("=")[-1].strip() for c in chains], "places": places}


def plain(text: str, essay: bool) -> str:
    """A text as we make it: where no sentence of an essay stands before a needle or behind it, the generator leaves a blank."""
    return re.sub(" *\n *", "\n", re.sub(" +", " ", text)) if essay else text


def generate(folder: pathlib.Path, task: str, config: dict, base: dict) -> dict:
    log, runs, length = [], [], LENGTHS.get(task, LENGTH)
    stubs(log)
    template = base["template"] + base["answer_prefix"]
    file = folder / f"{config['task']}.py"
    if config["task"] == "qa":
        file = folder / "qa.py"
    arguments = {"save_dir": folder, "save_name": task, "tokenizer_path": "-", "tokenizer_type": "-", "max_seq_length": length}
    arguments |= {"tokens_to_generate": base["tokens_to_generate"], "num_samples": SAMPLES, "random_seed": SEED, "template": template} | config["args"]
    module = load(file, f"{config['task']}_{task}", arguments)
    module.random = Recorded(log)
    record(module, log, {"niah": ["generate_random"], "variable_tracking": ["generate_chains"], "common_words_extraction": ["get_example"]}.get(config["task"], []))
    inner = module.generate_input_output

    def outer(*args, **kwargs):
        log.clear()
        out = inner(*args, **kwargs)
        runs.append((list(log), out, args, kwargs))
        return out

    module.generate_input_output = outer
    example = None
    match config["task"]:
        case "niah":
            written = module.generate_samples(SAMPLES, length, folder)
        case "variable_tracking":
            first = module.sys_vartrack_w_noise_random(num_samples=1, max_seq_length=500, incremental=5, num_chains=module.args.num_chains, num_hops=module.args.num_hops)[0]
            example = drawn_chain(runs[-1][0], runs[-1][2][0])
            written = module.sys_vartrack_w_noise_random(num_samples=SAMPLES, max_seq_length=length, num_chains=module.args.num_chains, num_hops=module.args.num_hops, icl_example=first, final_output=True)
        case "common_words_extraction":
            written = module.sys_word_pair_random(SAMPLES, length, folder)
        case "freq_words_extraction":
            written = module.sys_kwext(SAMPLES, length)
        case "qa":
            written = module.generate_samples(SAMPLES, length, folder)

    samples = []
    for w in written:
        whole = w["input"] + w["answer_prefix"]
        run_log, out, args, kwargs = next(r for r in reversed(runs) if whole.endswith(r[1][0]))
        match config["task"]:
            case "niah":
                module.args.lines = args[0]
                drawn = drawn_niah(run_log, module.args, args)
            case "variable_tracking":
                drawn = drawn_chain(run_log, args[0])
                shown = whole[: -len(out[0])].split()
                names = shown[-len(example["chains"][0]) :]
                value = re.search(r"VAR \w+ = (\d+)", whole)[1]
                drawn = {"drawn": drawn, "example": example | {"chains": [names], "values": [value]}}
            case "common_words_extraction":
                lists = [{"common": common, "list": re.split(r"(?:^| )\d+\. ", text)[1:]} for text, common in of(run_log, "get_example")]
                drawn = {"example": lists[0], "drawn": lists[1], "words": args[0]}
            case "freq_words_extraction":
                context = next(e[2] for e in run_log[::-1] if e[0] == "shuffle")
                drawn = {"frequent": out[1], "list": context, "words": out[2], "vocabulary": kwargs["vocab_size"], "alpha": kwargs["alpha"]}
            case "qa":
                documents = next(e[2] for e in run_log if e[0] == "shuffle")
                drawn = {"documents": documents, "asked": [{"question": module.QAS[args[0]]["query"], "answers": w["outputs"]}]}
        text = plain(w["input"], config["args"].get("type_haystack") == "essay")
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        samples.append({"drawn": drawn, "answers": w["outputs"], "prefix": w["answer_prefix"], "sha256": sha256})
        if w is written[0]:
            samples[0]["input"] = text
    return {"length": length, "tokens": base["tokens_to_generate"], "samples": samples}


def scored(metric, samples: list[dict]) -> None:
    """Adds answers with the authors' score: all, shouted, half of it, the first letters, nothing."""
    for s in samples:
        refs = s["answers"]
        half = refs[: max(len(refs) // 2, 1)]
        preds = [" ".join(refs), ", ".join(refs).upper() + ".", "They are " + " and ".join(half), " ".join(r[:-1] for r in refs), ""]
        s["scores"] = [{"answer": p, "score": metric([p], [refs]) / 100} for p in preds]


def main() -> None:
    checkout = pathlib.Path(sys.argv[1])
    tasks = yaml.safe_load((checkout / "scripts/synthetic.yaml").read_text())
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "data/synthetic"
        shutil.copytree(checkout / "scripts/data", folder.parent)
        made_questions(folder)
        sys.path[:0] = [str(folder)]
        base = load(folder / "constants.py", "constants", {}).TASKS
        metrics = load(checkout / "scripts/eval/synthetic/constants.py", "metrics", {}).TASKS
        golden = {"essay": re.findall(r"\S.*?(?:[.!?](?=\s)|$)", ESSAY, re.S), "tasks": {}}
        for task, config in tasks.items():
            golden["tasks"][task] = generate(folder, task, config, base[config["task"]])
            scored(metrics[config["task"]]["metric_fn"], golden["tasks"][task]["samples"])
            print(task, len(golden["tasks"][task]["samples"]))
    (here / "ruler.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
