"""What the peers' programs share: the prompt, and how it is timed."""
import json
import time


def prompt(n):
    """The ids of n tokens, the same for every contestant. Which ones they are makes no difference to the time."""
    return [(7 * i * i + 13 * i) % 40000 + 100 for i in range(n)]


def measure(length, tokens, forward):
    """Times forward(ids), which computes ids and returns the likeliest next one, for a prompt and for single tokens after
    it, and prints the medians in seconds of the clock and of the processor."""
    both = []

    def step(ids):
        clock, processor = time.perf_counter(), time.process_time()
        token = forward(ids)
        both.append((time.perf_counter() - clock, time.process_time() - processor))
        return token

    token = step(prompt(length))
    first = token
    for _ in range(tokens):
        token = step([token])
    middle = [sorted(b[k] for b in both[1:])[tokens // 2] for k in (0, 1)]
    print(json.dumps({"prefill": both[0][0], "prefill_cpu": both[0][1], "token": middle[0], "token_cpu": middle[1], "first": first}))
