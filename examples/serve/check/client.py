"""Uses a server of SmolLM2 with tools.jinja through OpenAI's client for Python, as scripts/hosts/serve.sh starts it.

    python client.py URL KEY
"""
import asyncio
import json
import sys

import openai

url, key = sys.argv[1:]
client = openai.OpenAI(base_url=url + "/v1", api_key=key, max_retries=0)
MODEL = client.models.list().data[0].id
QUESTION = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why is the sky blue?"}]
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "the weather in a city",
          "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]
failed = False


def say(good, name, text):
    global failed
    failed = failed or not good
    print(f"{'pass' if good else 'FAIL'}  {name:34} {text}", flush=True)


def chat(messages=QUESTION, **more):
    return client.chat.completions.create(model=MODEL, messages=messages, **{"temperature": 0, "max_tokens": 32, **more})


def weather(city, sky, number):
    """A call of the function, and what became of it: a small model does what it has seen."""
    call = {"id": number, "type": "function", "function": {"name": "get_weather", "arguments": json.dumps({"city": city})}}
    return [{"role": "user", "content": f"What is the weather in {city}?"}, {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": number, "content": sky}, {"role": "assistant", "content": f"It is {sky} in {city}."}]


CALLING = weather("Paris", "sunny", "1") + weather("Rome", "rainy", "2") + [{"role": "user", "content": "What is the weather in Oslo?"}]


def refused(name, kind, code, **asked):
    try:
        chat(**asked)
        say(False, name, "it was answered")
    except openai.APIStatusError as error:
        say(type(error) is kind and error.code == code, name, f"{type(error).__name__}, {error.status_code} {error.code}: {error.body['message']}")


whole = chat()
text = whole.choices[0].message.content
say(text and whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens, "an answer", f"{whole.usage.total_tokens} tokens: {text!r}")

chunks = list(chat(stream=True, stream_options={"include_usage": True}))
streamed = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
say(streamed == text and chunks[-1].usage == whole.usage, "the same as a stream", f"{len(chunks)} chunks")

stop = text.split()[3]
cut = chat(stop=stop).choices[0]
say(cut.message.content == text[:text.index(stop)] and cut.finish_reason == "stop", "a stop text", repr(cut.message.content))
with client.chat.completions.stream(model=MODEL, messages=QUESTION, temperature=0, max_tokens=32, stop=stop) as stream:
    final = stream.get_final_completion().choices[0]
say(final.message.content == cut.message.content, "the client's helper for streams", final.finish_reason)

first, again = (chat(temperature=1, seed=5, n=2) for _ in range(2))
texts = [c.message.content for c in first.choices]
say(texts == [c.message.content for c in again.choices] and texts[0] != texts[1], "a seed, two choices", repr([t[:24] for t in texts]))

scores = chat(logprobs=True, top_logprobs=2, max_tokens=4).choices[0].logprobs.content
say(len(scores) == 4 and all(s.logprob == s.top_logprobs[0].logprob <= 0 for s in scores), "log-probabilities", repr([(s.token, round(s.logprob, 3)) for s in scores]))

plain = client.completions.create(model=MODEL, prompt="The capital of France is", temperature=0, max_tokens=4)
say("Paris" in plain.choices[0].text and plain.usage.completion_tokens == 4, "a completion", repr(plain.choices[0].text))

asked = chat(CALLING, tools=TOOLS).choices[0]
calls = asked.message.tool_calls or []
say(asked.finish_reason == "tool_calls" and [c.function.name for c in calls] == ["get_weather"] and "city" in json.loads(calls[0].function.arguments),
    "a call of a function", calls and calls[0].function.arguments)
with client.chat.completions.stream(model=MODEL, messages=CALLING, tools=TOOLS, temperature=0, max_tokens=32) as stream:
    final = stream.get_final_completion().choices[0]
say(calls and final.message.tool_calls and final.message.tool_calls[0].function.arguments == calls[0].function.arguments, "the same as a stream", final.finish_reason)
given = chat(CALLING + [asked.message, {"role": "tool", "tool_call_id": calls[0].id if calls else "", "content": "foggy"}], tools=TOOLS).choices[0]
say(given.message.content, "what the function gave", repr(given.message.content))
without = chat(CALLING, tools=TOOLS, tool_choice="none").choices[0]
say(not without.message.tool_calls, "tool_choice none", without.finish_reason)

refused("a text beyond the context", openai.BadRequestError, "context_length_exceeded", messages=[{"role": "user", "content": "one two " * 3000}])
refused("another model", openai.NotFoundError, "model_not_found", extra_body={"model": "gpt"})
refused("a wrong temperature", openai.BadRequestError, None, temperature=3)
refused("what is not supported", openai.BadRequestError, None, presence_penalty=1)
refused("a wrong key", openai.AuthenticationError, "invalid_api_key", extra_headers={"Authorization": "Bearer wrong"})

left = chat(stream=True, max_tokens=2000)
next(left)
left.close()
say(True, "leave a stream", "after one chunk")


async def many(retries):
    """Sixteen questions at once for a server of two rows and a queue of two."""
    want = chat(max_tokens=8).choices[0].message.content
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key=key, max_retries=retries) as patient:
        async def one():
            try:
                answer = await patient.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0, max_tokens=8)
                return "right" if answer.choices[0].message.content == want else "another text"
            except openai.RateLimitError as error:
                return error.code
        return await asyncio.gather(*(one() for _ in range(16)))


results = asyncio.run(many(0))
say(set(results) == {"right", "queue_full"}, "more than there is room for", f"{results.count('right')} answered, {results.count('queue_full')} refused")
results = asyncio.run(many(100))
say(set(results) == {"right"}, "the same with a client that repeats", f"{results.count('right')} answered")
sys.exit(failed)
