// A conversation with the server's model: the answer is streamed, and can be stopped.
const at = (id) => document.getElementById(id);
const messages = [];
let stopping; // aborts the answer that is streamed

function say(state, text) {
  at('state').dataset.state = state;
  at('state').textContent = text;
  at('send').disabled = at('clear').disabled = state === 'busy';
  at('stop').disabled = state !== 'busy';
}

function show(role, text) {
  const p = document.createElement('p');
  p.className = role;
  p.textContent = text;
  at('talk').append(p);
  return p;
}

async function call(path, options = {}) {
  const key = at('key').value;
  const answer = await fetch(path, { ...options, headers: { 'Content-Type': 'application/json', ...(key && { Authorization: `Bearer ${key}` }) } });
  if (!answer.ok) throw new Error((await answer.json()).error.message);
  return answer;
}

// The events of a stream, up to [DONE].
async function* events(body) {
  let text = '';
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const lines = (text + piece).split('\n\n');
    text = lines.pop();
    for (const line of lines) {
      if (line === 'data: [DONE]') return;
      const event = JSON.parse(line.slice('data: '.length));
      if (event.error) throw new Error(event.error.message);
      yield event;
    }
  }
}

async function answer() {
  stopping = new AbortController();
  const shown = show('assistant', '');
  let text = '', tokens = 0, first = 0, finish = 'stopped by you';
  const figures = () => {
    const seconds = (performance.now() - first) / 1000;
    return tokens > 1 ? `${tokens} tokens, ${((tokens - 1) / seconds).toFixed(1)} tokens/s` : `${tokens} tokens`;
  };
  try {
    const temperature = at('temperature').value;
    const { body } = await call('v1/chat/completions', {
      method: 'POST', signal: stopping.signal,
      body: JSON.stringify({ messages, stream: true, logprobs: true, max_tokens: Number(at('most').value), ...(temperature !== '' && { temperature: Number(temperature) }) }),
    });
    for await (const { choices: [choice] } of events(body)) {
      // A piece of text can be of several tokens: their log-probabilities are counted.
      tokens += choice.logprobs?.content.length ?? 0;
      first ||= performance.now();
      text += choice.delta.content ?? '';
      finish = choice.finish_reason ?? finish;
      shown.textContent = text;
      say('busy', figures());
    }
  } catch (error) {
    if (error.name !== 'AbortError') {
      if (text === '') shown.remove();
      return say('failed', error.message);
    }
  }
  messages.push({ role: 'assistant', content: text });
  say('ready', `${figures()}. The text ended: ${finish}.`);
}

at('form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const content = at('prompt').value;
  if (messages.at(-1)?.role === 'user') { // it was not answered
    messages.pop();
    at('talk').lastChild.remove();
  }
  messages.push({ role: 'user', content });
  show('user', content);
  at('prompt').value = '';
  say('busy', 'Reading …');
  await answer();
});
at('prompt').addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && !event.shiftKey) {
    event.preventDefault();
    if (!at('send').disabled) at('form').requestSubmit();
  }
});
at('stop').addEventListener('click', () => stopping.abort());
at('clear').addEventListener('click', () => {
  messages.length = 0;
  at('talk').replaceChildren();
  say('ready', 'Ready.');
});
call('v1/models').then((answer) => answer.json()).then(({ data }) => { at('model').textContent = data[0].id; }, () => {}); // without a key yet
