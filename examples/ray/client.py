"""Puts load on the application of serve.py, kills one of its replicas halfway, and says what callers saw.

    python client.py [SECONDS [CALLERS]]
"""
import collections
import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request

URL = os.environ.get("URL", "http://localhost:8000")


def call(prompt):
    request = urllib.request.Request(URL, json.dumps({"prompt": prompt, "tokens": 16}).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def main(seconds, callers):
    prompts = ["Why is the sky blue?", "The capital of France is", "Water boils at"]
    want = {p: call(p)["text"] for p in prompts}
    calls, lock, end = [], threading.Lock(), time.time() + seconds

    def caller(number):
        while time.time() < end:
            prompt = prompts[number % len(prompts)]
            begun = time.time()
            try:
                answer = call(prompt)
                what = "right" if answer["text"] == want[prompt] else "another text"
            except urllib.error.HTTPError as error:
                answer, what = {}, f"HTTP {error.code}"
                error.read()
            except OSError as error:
                answer, what = {}, type(error).__name__
            with lock:
                calls.append((begun, time.time() - begun, what, answer.get("process")))
            number += 1

    threads = [threading.Thread(target=caller, args=(n,)) for n in range(callers)]
    for t in threads:
        t.start()
    time.sleep(seconds / 2)
    victim = collections.Counter(c[3] for c in calls if c[3]).most_common(1)[0][0]
    os.kill(victim, signal.SIGKILL)
    killed = time.time()
    for t in threads:
        t.join()

    before = sorted(c[1] for c in calls if c[0] + c[1] < killed)
    after = sorted(c[1] for c in calls if c[0] >= killed)
    print(f"{len(calls)} calls by {callers} callers in {seconds:.0f} s: {dict(collections.Counter(c[2] for c in calls))}")
    print(f"killed process {victim} after {seconds / 2:.0f} s; processes that answered: {len({c[3] for c in calls if c[3]})}")
    others = [c for c in calls if c[2] != "right"]
    if others:
        print(f"calls that failed: {len(others)}, begun between {min(c[0] for c in others) - killed:+.1f} s and {max(c[0] for c in others) - killed:+.1f} s of the kill")
    new = [c[0] + c[1] for c in calls if c[3] and c[0] > killed and c[3] not in {x[3] for x in calls if x[0] < killed}]
    if new:
        print(f"a new replica answered first {min(new) - killed:.1f} s after the kill")
    print(f"seconds per call, median: {before[len(before) // 2]:.2f} before the kill, {after[len(after) // 2]:.2f} after")
    sys.exit(1 if any(c[2] == "another text" for c in calls) else 0)


if __name__ == "__main__":
    main(*(float(a) if i == 0 else int(a) for i, a in enumerate(sys.argv[1:] or ["60", "4"])))
