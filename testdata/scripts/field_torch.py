"""What field.py exports from PyTorch: one small decoder, and what each row of the list does otherwise.

A row is a subclass of Decoder. It says what positions a token has, how query and key are turned by them, what the cache
holds and what is added to scores.
"""
import math

import torch

HIDDEN, SIZE, VOCAB = 16, 16, 64


def frequencies(channels, theta=10000.0):
    return theta ** -(torch.arange(0, channels, 2).double() / channels)


def halves(x):
    """Each channel's partner half a rotation away."""
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def neighbours(x):
    """Each channel's neighbour."""
    return torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)


def twice(x):
    """Each channel twice, side by side."""
    return torch.stack((x, x), -1).flatten(-2)


def repeated(x, times):
    """Each head so many times."""
    batch, heads, length, size = x.shape
    return x[:, :, None].expand(batch, heads, times, length, size).reshape(batch, heads * times, length, size)


class Decoder(torch.nn.Module):
    layers, heads, kv = 1, 2, 2
    mask, positions, past = True, False, False  # which inputs it has beside the tokens
    rotary, causal, raw = SIZE, True, False     # rotated channels of a head; what the cache holds
    fixed = False                               # all sizes are those of the example

    def __init__(self):
        super().__init__()
        linear = lambda a, b: torch.nn.Linear(a, b, bias=False)
        self.embed = torch.nn.Embedding(VOCAB, HIDDEN)
        self.norm = torch.nn.ModuleList(torch.nn.LayerNorm(HIDDEN) for _ in range(self.layers))
        self.q = torch.nn.ModuleList(linear(HIDDEN, self.heads * SIZE) for _ in range(self.layers))
        self.k = torch.nn.ModuleList(linear(HIDDEN, self.kv * SIZE) for _ in range(self.layers))
        self.v = torch.nn.ModuleList(linear(HIDDEN, self.kv * SIZE) for _ in range(self.layers))
        self.o = torch.nn.ModuleList(linear(self.heads * SIZE, HIDDEN) for _ in range(self.layers))
        self.head = linear(HIDDEN, VOCAB)
        self.register_buffer("omega", frequencies(self.rotary).float())

    # What rows do otherwise.
    def places(self, length, total, mask, position_ids):
        """The positions of this call's tokens, [rows, length]."""
        return position_ids if position_ids is not None else torch.arange(total)[None, total - length:]

    def tables(self, at, total, layer):
        """Cosines and sines [rows, 1, length, rotary]."""
        angle = at[:, None, :, None].float() * self.omega
        angle = torch.cat((angle, angle), -1)
        return angle.cos(), angle.sin()

    def turn(self, x, tables, layer, query):
        cos, sin = tables
        a, rest = x[..., :self.rotary], x[..., self.rotary:]
        a = a * cos + halves(a) * sin
        return torch.cat((a, rest), -1) if self.rotary < SIZE else a

    def before(self, x, at, layer):
        """What query and key are projected from."""
        return x

    def hidden(self, i, j, layer):
        """Which keys j a query i does not see."""
        return j > i

    def finish(self, x, layer, query):
        """What happens to heads between projection and rotation."""
        return x

    def scores(self, q, k, at, layer):
        return q @ k.transpose(-1, -2) / SIZE ** 0.5

    def source(self, layer):
        """The layer whose keys and values this one reads."""
        return layer

    def between(self, h, layer):
        """What stands between attention layers."""
        return h

    def forward(self, input_ids, attention_mask=None, position_ids=None, *past):
        h = self.embed(input_ids)
        batch, length = input_ids.shape
        total = length + past[0].shape[2] if past else length
        caches = iter(past)
        at = self.places(length, total, attention_mask, position_ids)
        j = torch.arange(total)
        present, read = [], []
        self.shown = attention_mask
        for n in range(self.layers):
            x = self.norm[n](h)
            x_turned = self.before(x, at, n)
            split = lambda y, heads: y.view(batch, length, heads, SIZE).transpose(1, 2)
            q, k = (self.finish(split(p[n](x_turned), heads), n, is_query) for p, heads, is_query in ((self.q, self.heads, True), (self.k, self.kv, False)))
            v = split(self.v[n](x), self.kv)
            q = self.turn(q, self.tables(at, total, n), n, True)
            if not self.raw:
                k = self.turn(k, self.tables(at, total, n), n, False)
            if self.source(n) != n:
                k, v = read[self.source(n)]
            elif past:
                k, v = torch.cat((next(caches), k), 2), torch.cat((next(caches), v), 2)
                present += [k, v]
            read.append((k, v))
            if self.raw:
                k = self.turn(k, self.tables(j[None], total, n), n, False)
            if self.kv < self.heads:
                k, v = repeated(k, self.heads // self.kv), repeated(v, self.heads // self.kv)
            scores = self.scores(q, k, at, n)
            if self.causal:
                scores = scores.masked_fill(self.hidden(torch.arange(total)[total - length:, None], j[None], n), torch.finfo(torch.float32).min)
            if attention_mask is not None:
                scores = scores.masked_fill(attention_mask[:, None, None] == 0, torch.finfo(torch.float32).min)
            mixed = scores.softmax(-1) @ v
            h = self.between(h + self.o[n](mixed.transpose(1, 2).reshape(batch, length, self.heads * SIZE)), n)
        return (self.head(h), *present)


class Cached(Decoder):
    """A cache of rotated keys, as most exports have it: what RawCache computes otherwise."""
    past = True


class RawCache(Cached):
    """Keys are cached as they come and rotated, all of them, in every call."""
    raw = True


class RawCacheFedPositions(RawCache):
    """The same, but the caller gives positions for the queries."""
    positions = True


class NoPositions(Cached):
    """Nothing gives positions: padding on the left shifts a text."""
    kv = 1


class SumOfMask(Decoder):
    """Positions are counted from the attention mask, 1 where it is 0."""

    def places(self, length, total, mask, position_ids):
        return (mask.cumsum(-1) - 1).masked_fill(mask == 0, 1)


class SumOfMaskCached(Cached):
    """The same with a cache, padding standing at 0."""
    kv = 1

    def places(self, length, total, mask, position_ids):
        return ((mask.cumsum(-1) - 1) * mask)[:, total - length:]


class MinusLength(Decoder):
    """Positions end at −1."""

    def places(self, length, total, mask, position_ids):
        return torch.arange(length)[None] - length


class OnePastPadding(Decoder):
    """Positions begin at 2, behind a padding index of 1."""

    def places(self, length, total, mask, position_ids):
        return mask.cumsum(-1) * mask + 1


class Proportional(Decoder):
    """Frequencies of the whole head for its first quarter, none for the rest; beside a windowed layer."""
    layers = 2

    def tables(self, at, total, layer):
        w = self.omega
        if layer == 1:
            w = torch.where(torch.arange(SIZE // 2) < SIZE // 8, frequencies(SIZE, 1e6).float(), torch.zeros(()))
        angle = at[:, None, :, None].float() * w
        angle = torch.cat((angle, angle), -1)
        return angle.cos(), angle.sin()

    def hidden(self, i, j, layer):
        return (j > i) | (i - j >= 4) if layer == 0 else j > i


class RotatedStates(Decoder):
    """Speech encoders rotate hidden states before the projections."""
    causal = False

    def before(self, x, at, layer):
        cos, sin = (t[:, 0] for t in super().tables(at, at.shape[1], layer))
        return x * cos + halves(x) * sin

    def turn(self, x, tables, layer, query):
        return x


class BetweenConvolutions(Decoder):
    """Attention layers between short convolutions."""
    kv = 1

    def __init__(self):
        super().__init__()
        self.omega.copy_(frequencies(SIZE, 1e6).float())
        self.conv = torch.nn.Conv1d(HIDDEN, HIDDEN, 3, groups=HIDDEN)

    def between(self, h, layer):
        h = h * self.shown[..., None]  # padding must not reach its neighbours
        return h + self.conv(torch.nn.functional.pad(h.transpose(1, 2), (2, 0))).transpose(1, 2)


class DecayByPosition(Decoder):
    """xPos: keys grow and queries shrink with the position."""

    def turn(self, x, tables, layer, query):
        x = super().turn(x, tables, layer, query)
        length = x.shape[2]
        zeta = (torch.arange(0, SIZE, 2) / SIZE + 0.4) / 1.4
        power = (torch.arange(length) - length // 2)[:, None] / 512
        scale = zeta ** (power if query else -power)
        return x * torch.cat((scale, scale), -1)


class LogLength(Decoder):
    """Queries beyond a trained length are multiplied by a logarithm of their position."""

    def finish(self, x, layer, query):
        if not query:
            return x
        n = torch.arange(x.shape[2]) + 1
        return x * torch.where(n > 16, n.float().log() / torch.log(torch.tensor(16.0)), torch.ones(()))[:, None]


class GrowingBase(Cached):
    """A base that follows the length of a call by steps of a power of two, as the first Qwen has it."""
    kv = 1

    def tables(self, at, total, layer):
        tokens = torch.ones_like(at[0]).sum() + at.min()
        alpha = 2 ** torch.ceil(torch.log2(tokens / 16.0) + 1) - 1
        theta = 10000.0 * alpha.clamp(min=1) ** (SIZE / (SIZE - 2))
        angle = at[:, None, :, None].float() * theta ** -(torch.arange(0, SIZE, 2).float() / SIZE)
        angle = torch.cat((angle, angle), -1)
        return angle.cos(), angle.sin()


class EveryFourth(Decoder):
    """Every second layer without rotation."""
    layers, kv = 2, 1

    def turn(self, x, tables, layer, query):
        return super().turn(x, tables, layer, query) if layer == 0 else x


class Table(Decoder):
    """RoFormer: a table of cosines computed in float64, neighbouring channels, both directions."""
    causal = False

    def __init__(self):
        super().__init__()
        angle = torch.arange(1536)[:, None].double() * frequencies(SIZE)
        self.register_buffer("cos", angle.cos().float())
        self.register_buffer("sin", angle.sin().float())

    def tables(self, at, total, layer):
        return tuple(twice(t[at])[:, None] for t in (self.cos, self.sin))

    def turn(self, x, tables, layer, query):
        cos, sin = tables
        return x * cos + neighbours(x) * sin


class HalfInterleaved(Cached):
    """ChatGLM: neighbouring channels of half the head."""
    kv, rotary, positions = 1, SIZE // 2, True

    def turn(self, x, tables, layer, query):
        cos, sin = (twice(t[..., :self.rotary // 2]) for t in tables)
        a, rest = x[..., :self.rotary], x[..., self.rotary:]
        return torch.cat((a * cos + neighbours(a) * sin, rest), -1)


class RealPairs(Decoder):
    """A product of complex numbers, written with real ones."""

    def turn(self, x, tables, layer, query):
        cos, sin = (t[..., :SIZE // 2] for t in tables)
        re, im = x.unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack((re * cos - im * sin, re * sin + im * cos), -1).flatten(-2)


class Embedder(Decoder):
    """An encoder that computes its angles in every call, with norms on query and key."""
    causal, kv = False, 1

    def finish(self, x, layer, query):
        return x * (x.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt()


class Windows(Cached):
    """A windowed layer with one base, a full one with another."""
    layers, kv, positions = 2, 1, True

    def tables(self, at, total, layer):
        angle = at[:, None, :, None].float() * (self.omega if layer else frequencies(SIZE, 1000.0).float())
        angle = torch.cat((angle, angle), -1)
        return angle.cos(), angle.sin()

    def hidden(self, i, j, layer):
        return j > i if layer else (j > i) | (i - j >= 8)


class SharedKeys(Cached):
    """The second layer reads the keys and values of the first."""
    layers, kv, positions = 2, 1, True

    def source(self, layer):
        return 0


class Plain(Cached):
    """What most exports are; the rows differ in what config.json claims."""
    kv, positions = 1, True


class Linear(Plain):
    """Positions divided by 4."""

    def __init__(self):
        super().__init__()
        self.omega.div_(4)


class Yarn(Plain):
    """YaRN with factor 4 over 16 trained positions, its gain on cosines and sines."""
    gain = 0.1 * math.log(4) + 1

    def __init__(self):
        super().__init__()
        low, high = (SIZE * math.log(16 / (turns * 2 * math.pi)) / (2 * math.log(10000.0)) for turns in (32, 1))
        low, high = max(math.floor(low), 0), min(math.ceil(high), SIZE - 1)
        ramp = ((torch.arange(SIZE // 2).double() - low) / (high - low)).clamp(0, 1)
        self.omega.copy_(frequencies(SIZE) * (1 - ramp * 3 / 4))

    def tables(self, at, total, layer):
        return tuple(t * self.gain for t in super().tables(at, total, layer))


class FixedSizes(Plain):
    """Exported for one batch, one length and one number of cached tokens."""
    fixed = True


class ThreePositions(Cached):
    """Positions of time, height and width, each for some of the pairs."""
    kv, positions = 1, 3

    def places(self, length, total, mask, position_ids):
        return position_ids

    def tables(self, at, total, layer):
        angle = at[..., None].float() * self.omega  # [3, batch, length, pairs]
        angle = torch.cat((angle[0, ..., :2], angle[1, ..., 2:5], angle[2, ..., 5:]), -1)[:, None]
        angle = torch.cat((angle, angle), -1)
        return angle.cos(), angle.sin()


class FedTables(Decoder):
    """The caller computes cosines and sines."""
    tables_fed = True

    def forward(self, input_ids, attention_mask, cos, sin):
        self.fed = cos[:, None], sin[:, None]
        return super().forward(input_ids, attention_mask)

    def tables(self, at, total, layer):
        return self.fed


class Distances(Decoder):
    """ALiBi: a penalty by distance, no rotation."""

    def turn(self, x, tables, layer, query):
        return x

    def scores(self, q, k, at, layer):
        j = torch.arange(k.shape[2])
        return super().scores(q, k, at, layer) - (j[None] - j[:, None]).abs() * torch.tensor([0.25, 0.0625])[:, None, None]


class Patches(torch.nn.Module):
    """Tokens that are no text: half of a head is turned by the row of a patch, half by its column."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(HIDDEN, 2 * SIZE) for _ in range(3))
        self.o = torch.nn.Linear(2 * SIZE, HIDDEN)
        self.register_buffer("omega", frequencies(SIZE // 2, 100.0).float())

    def grid(self, rows, columns):
        """Rows and columns of all patches, [patches, 2]."""
        return torch.stack(torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij"), -1).flatten(0, 1)

    def attend(self, x, memory, at):
        """x [batch, tokens, HIDDEN] attends to memory; at are the places of both, [tokens, axes]."""
        angle = (at[..., None].float() * self.omega).flatten(-2)  # [tokens, pairs]
        cos, sin = (torch.cat((t, t), -1) for t in (angle.cos(), angle.sin()))
        q, k, v = (p(y).unflatten(-1, (2, SIZE)).transpose(1, 2) for p, y in ((self.q, x), (self.k, memory), (self.v, memory)))
        q, k = (t * cos + halves(t) * sin for t in (q, k))
        return x + self.o(((q @ k.transpose(-1, -2) / SIZE ** 0.5).softmax(-1) @ v).transpose(1, 2).flatten(2))


class Image(Patches):
    """An image of any size."""
    side = 20, 12
    axes = dict(pixel_values={0: "batch", 2: "height", 3: "width"})

    def __init__(self):
        super().__init__()
        self.patch = torch.nn.Conv2d(3, HIDDEN, 4, 4)

    def feeds(self):
        return dict(pixel_values=torch.randn(2, 3, *self.side))

    def forward(self, pixel_values):
        x = self.patch(pixel_values)
        at = self.grid(*x.shape[2:])
        x = x.flatten(2).transpose(1, 2)
        return (self.attend(x, x, at),)


class FixedImage(Image):
    """The same with a table for one size of image."""
    side = 32, 32
    axes = dict(pixel_values={0: "batch"})

    def __init__(self):
        super().__init__()
        self.register_buffer("places", super().grid(8, 8))

    def grid(self, rows, columns):
        return self.places


class Memory(Patches):
    """Features of one frame attend to those of another, both on a grid of 6 rows and 4 columns."""
    axes = dict(features={0: "batch"}, memory={0: "batch"})

    def __init__(self):
        super().__init__()
        self.register_buffer("places", self.grid(6, 4))

    def feeds(self):
        return dict(features=torch.randn(2, 24, HIDDEN), memory=torch.randn(2, 24, HIDDEN))

    def forward(self, features, memory):
        return (self.attend(features, memory, self.places),)


class GivenPlaces(Patches):
    """Text and image together, each token with rows and columns that the caller gives as numbers."""
    axes = dict(text={0: "batch", 1: "words"}, image={0: "batch", 1: "patches"}, places={0: "tokens"})

    def feeds(self):
        return dict(text=torch.randn(2, 3, HIDDEN), image=torch.randn(2, 8, HIDDEN), places=torch.cat((torch.zeros(3, 2), self.grid(2, 4).float())))

    def forward(self, text, image, places):
        x = torch.cat((text, image), 1)
        return (self.attend(x, x, places),)


class Grids(Patches):
    """Patches of several images in one row; an integer input has the rows and columns of each token."""
    axes = dict(patches={0: "patches"}, places={0: "patches"})

    def feeds(self):
        return dict(patches=torch.randn(14, 12), places=torch.cat((self.grid(2, 3), self.grid(2, 4))))

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Linear(12, HIDDEN)

    def forward(self, patches, places):
        x = self.embed(patches)[None]
        return (self.attend(x, x, places)[0],)
