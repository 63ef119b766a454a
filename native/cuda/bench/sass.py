"""Counts what a kernel's loops issue beside their tensor core instructions.

    make cuda
    python3 native/cuda/bench/sass.py build/native/cuda/launch_f16.o

Needs no GPU, only cuobjdump with nvdisasm beside it, from a CUDA toolkit or from the
Python package triton (--cuobjdump says where it is). torch's FlashAttention-2, the
yardstick, is in a few of the files that a library is made of:

    cuobjdump -arch sm_90 -xelf all .../torch/lib/libtorch_cuda.so
    python3 native/cuda/bench/sass.py --kernels flash_fwd_kernel $(grep -l flash_fwd_kernel *.cubin)

A warpgroup's HGMMA (wgmma.m64nNk16) counts as the N / 8 HMMA that each of its four warps would
issue instead, and the shared memory that it reads as read by each to a quarter.

For each kernel that has HMMA (mma.m16n8k16) the script prints its registers and its
stack, a line for everything in it, and a line for each loop around HMMA, inner ones
indented under outer ones: how many HMMA a warp issues in one pass, how many instructions
of each class it issues for one HMMA, that one included, how many bytes of shared memory
it reads for one, and the lead: how many HMMA stand, on average, between an LDSM and the
first HMMA that uses what it loads, which would otherwise wait for it.

One pass is one way through the loop from its first block back to it. Loops have more
ways than one: tiles that need masks, rows that need care, the last tile, which has no
next one to copy. Of the ways with the same number of HMMA the script takes the one that
copies the most with LDGSTS (so the copy of the next tile counts), and of those the
shortest (so a mask that can be jumped over does not; but where the weight of a hidden
key can be jumped over, that is too: then MUFU shows less than one power for each score).
Of the numbers of HMMA it takes the one with the fewest instructions for each; --ways
prints a line for every number. An inner loop counts as one pass, or as none where it can
be jumped over; what is called does not count. Instructions under a predicate count as
issued; HMMA? is the part of the HMMA that are under one.
"""

import argparse
import collections
import json
import re
import shutil
import subprocess
import sys

# The columns and the instructions that count there, by the part of their names before
# the first dot. What is nowhere else is "integer".
CLASSES = {
    "HMMA?": "",
    "LDSM": "LDSM",
    "LDS": "LDS",
    "STS": "STS STSM ATOMS",
    "LDGSTS": "LDGSTS",
    "global": "LDG LD STG ST ATOM ATOMG RED",
    "const": "LDC ULDC",
    "spill": "LDL STL",
    "MUFU": "MUFU",
    "float": "FFMA FMUL FADD FMNMX FSEL FSET FSETP FCHK HFMA2 HADD2 HMUL2 HMNMX2 HSET2 HSETP2 DADD DMUL DFMA DSETP",
    "convert": "F2FP F2F F2I F2IP I2F I2FP I2IP FRND PRMT UPRMT",
    "shuffle": "SHFL VOTE VOTEU REDUX MATCH MOVM",
    "integer": "",
    "move": "MOV UMOV CS2R S2R S2UR R2UR",
    "predicate": "ISETP UISETP PLOP3 UPLOP3 P2R R2P",
    "control": "BRA BRX JMP JMX BSSY BSYNC BREAK BMOV CALL RET EXIT NOP NANOSLEEP WARPSYNC YIELD USETMAXREG",
    "barrier": "BAR DEPBAR LDGDEPBAR MEMBAR ERRBAR FENCE SYNCS CCTL WARPGROUP",
}
CLASS_OF = {name: column for column, names in CLASSES.items() for name in names.split()}
LINE = re.compile(r"\s+/\*(?P<address>[0-9a-f]{4,})\*/\s+(?:@(?P<predicate>!?U?P\w+)\s+)?(?P<text>[^;]*?)\s*;")


class Instruction:
    def __init__(self, address, predicate, text):
        self.address, self.predicate, self.text = int(address, 16), predicate, text
        self.name, *self.suffixes = text.split()[0].split(".")
        self.never = predicate == "!PT"  # padding in front of LDGSTS
        # How many products of 16 x 8 x 16 it is to a warp.
        self.hmma = int(self.name == "HMMA")
        if self.name == "HGMMA":
            self.hmma = int(self.suffixes[0].split("x")[1]) // 8

    def column(self):
        """The class it counts in, but for HMMA, which the others are counted by."""
        if self.hmma:
            return "HMMA?" if self.predicate else None
        if self.never:
            return "control"
        # Two ways to move a register or a constant on a pipe that is free.
        if self.name == "IMAD" and "MOV" in self.suffixes or self.name == "HFMA2" and "-RZ, RZ" in self.text:
            return "move"
        return CLASS_OF.get(self.name, "integer")

    def bytes(self):
        """What a warp moves: the 8 x 8 matrices of an LDSM, or a number for each of 32 threads."""
        if self.never:
            return 0
        if self.name == "HGMMA":  # the 16 columns of one matrix, or of both, for the four warps
            left = 64 if self.text.split()[2].startswith("gdesc") else 0
            return (left + 8 * self.hmma) * 16 * 2 // 4
        if self.name == "LDSM":
            return 128 * int(self.suffixes[-1]) if self.suffixes[-1].isdigit() else 128
        sizes = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}
        return 32 * next((sizes[s] for s in self.suffixes if s in sizes), 4)

    def registers(self):
        """The registers that an LDSM writes, or that an HMMA (16816) multiplies."""
        if self.name == "HGMMA":
            return set()
        names = [int(n[1:]) if n != "RZ" else None for n in re.findall(r"\bR(?:Z|\d+)\b", self.text)]
        spans = [(names[0], self.bytes() // 128)] if self.name == "LDSM" else [(names[1], 4), (names[2], 2)]
        return {first + n for first, count in spans if first is not None for n in range(count)}

    def successors(self, following):
        """What may come next in the same kernel; None of an instruction that ends no block."""
        target = re.search(r"(?:^|\s)(0x[0-9a-f]+)$", self.text)
        sure = self.predicate is None and len(self.text.split()) <= 2
        if self.name == "BRA" or self.name == "CALL" and not sure:  # some loops are left by a CALL
            return ([int(target[1], 16)] if target else []) + ([] if sure else [following])
        if self.name in ("EXIT", "RET", "BRX", "JMP", "JMX"):
            return [] if self.predicate is None else [following]
        return None


class Kernel:
    def __init__(self, arch, name):
        self.arch, self.name, self.instructions, self.usage = arch, name, [], {}

    def cut_into_blocks(self):
        """Fills blocks, {first address: instructions}, next, {block: its successors}, and
        place, {block: its number} in an order in which only branches back lead back."""
        code = self.instructions
        following = {a.address: b.address for a, b in zip(code, code[1:])}
        after = {i.address: i.successors(following.get(i.address)) for i in code}
        starts = {code[0].address}
        for address, successors in after.items():
            if successors is not None:
                starts.update(successors + [following.get(address)])
        self.blocks, self.next = {}, {}
        for i in code:
            if i.address in starts:
                block = self.blocks[i.address] = []
            block.append(i)
        for start, block in self.blocks.items():
            last = block[-1].address
            successors = [following.get(last)] if after[last] is None else after[last]
            self.next[start] = [s for s in successors if s in self.blocks]
        entry = code[0].address
        order, seen, stack = [], {entry}, [(entry, iter(self.next[entry]))]
        while stack:
            block, rest = stack[-1]
            successor = next((s for s in rest if s not in seen), None)
            if successor is None:
                order.append(block)
                stack.pop()
            else:
                seen.add(successor)
                stack.append((successor, iter(self.next[successor])))
        self.place = {block: n for n, block in enumerate(reversed(order))}

    def loops(self):
        """Natural loops, {first block: all blocks}: a branch back to a block that every way
        to the branch passes, and all that leads to the branch without passing it again."""
        before = collections.defaultdict(list)
        for block in self.place:
            for successor in self.next[block]:
                before[successor].append(block)
        entry, *others = self.place
        # The last block before each that every way to it passes: Cooper, Harvey and
        # Kennedy, "A Simple, Fast Dominance Algorithm".
        above = {entry: entry}

        def common(a, b):
            while a != b:
                if self.place[a] < self.place[b]:
                    a, b = b, a
                a = above[a]
            return a

        changed = True
        while changed:
            changed = False
            for block in others:
                known = [b for b in before[block] if b in above]
                nearest = known[0]
                for b in known[1:]:
                    nearest = common(nearest, b)
                changed |= above.get(block) != nearest
                above[block] = nearest
        found = collections.defaultdict(set)
        for block in self.place:
            for first in self.next[block]:
                if self.place[first] > self.place[block] or common(first, block) != first:
                    continue
                body, pending = found[first], [block]
                body.add(first)
                while pending:
                    b = pending.pop()
                    if b not in body:
                        body.add(b)
                        pending += before[b]
        return dict(found)

    def ways(self, first, body):
        """One way through the loop for each number of HMMA: {HMMA: [blocks]}."""
        # Block: {HMMA from the loop's first block to this one: the best (bytes copied,
        # minus instructions), and the way there as a linked list}
        best, ends = {first: {0: ((0, 0), None)}}, {}
        for block in sorted(body, key=self.place.get):
            code = self.blocks[block]
            hmma = sum(i.hmma for i in code)
            copied = sum(i.bytes() for i in code if i.name == "LDGSTS")
            for so_far, (score, way) in best.get(block, {}).items():
                value = (score[0] + copied, score[1] - len(code)), (block, way)
                for successor in self.next[block]:
                    if successor == first:
                        targets = ends
                    elif successor in body and self.place[successor] > self.place[block]:
                        targets = best.setdefault(successor, {})
                    else:
                        continue
                    if value[0] > targets.setdefault(so_far + hmma, value)[0]:
                        targets[so_far + hmma] = value
        found = {}
        for hmma, (_, way) in sorted(ends.items()):
            found[hmma] = []
            while way:
                block, way = way
                found[hmma].insert(0, block)
        found.pop(0, None)
        return found

    def counts(self, blocks):
        code = [i for block in blocks for i in self.blocks[block]]
        count = collections.Counter(i.column() for i in code)
        return {
            "HMMA": sum(i.hmma for i in code),
            "all": len(code),
            **{column: count[column] for column in CLASSES},
            "B read": sum(i.bytes() for i in code if i.name in ("LDS", "LDSM", "HGMMA")),
            "lead": lead_of(code),
        }


def lead_of(code):
    """The HMMA between an LDSM and the first HMMA that uses its registers, on average."""
    pending, leads, hmma = {}, [], 0  # register: its LDSM's number and the HMMA before it
    for number, i in enumerate(code):
        if i.name == "LDSM":
            pending.update((register, (number, hmma)) for register in i.registers())
        elif i.hmma:
            for load in {pending[r] for r in i.registers() if r in pending}:
                leads.append(hmma - load[1])
                pending = {r: other for r, other in pending.items() if other != load}
            hmma += i.hmma
    return sum(leads) / max(1, len(leads))


def kernels_of(path, options):
    """The kernels of a file that have HMMA and a name that matches."""

    def output(flag):
        command = [options.cuobjdump, flag, *(["-arch", options.arch] if options.arch else []), path]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        except OSError as error:
            sys.exit(f"sass.py: cannot run cuobjdump: {error}; --cuobjdump says where it is")
        if done.returncode:
            sys.exit(f"sass.py: {' '.join(command)}: {done.stderr.strip()}")
        return done.stdout.splitlines()

    found, arch = [], None
    for line in output("-sass"):
        if "code for sm_" in line:
            arch = line.split()[-1]
        elif "Function :" in line:
            found.append(Kernel(arch, line.split()[-1]))
        elif match := LINE.match(line):
            found[-1].instructions.append(Instruction(**match.groupdict()))
    # Registers come in a list of their own; a kernel's machines in the same order.
    usage, name = collections.defaultdict(list), None
    for line in output("-res-usage"):
        if match := re.match(r"\s*Function (\S+):", line):
            name = match[1]
        elif "REG:" in line:
            usage[name].append({k: int(v) for k, v in re.findall(r"(REG|STACK):(\d+)", line)})
    for kernel in found:
        kernel.usage = usage[kernel.name].pop(0)
    wanted = re.compile(options.kernels)
    return [k for k in found if wanted.search(k.name) and any(i.hmma for i in k.instructions)]


def readable(name):
    tool = shutil.which("c++filt")
    return subprocess.run([tool, name], stdout=subprocess.PIPE, text=True).stdout.strip() if tool else name


def print_row(label, counts):
    per_hmma = {c: n / max(1, counts["HMMA"]) for c, n in counts.items() if c not in ("HMMA", "lead")} | {"lead": counts["lead"]}
    cells = [f"{n:>{max(8, len(c) + 2)}.{0 if c == 'B read' else 2}f}" for c, n in per_hmma.items()]
    print(f"{label:<18}{counts['HMMA']:>6}" + "".join(cells))


def report(kernel, options):
    """Prints a kernel; returns the same as plain data."""
    kernel.cut_into_blocks()
    name, everything = readable(kernel.name), kernel.counts(kernel.blocks)
    print(f"\n{kernel.arch} {name}")
    print(f"{kernel.usage['REG']} registers, {kernel.usage['STACK']} B of stack, {everything['all']} instructions")
    print(f"{'loop':<18}{'HMMA':>6}" + "".join(f"{c:>{max(8, len(c) + 2)}}" for c in everything if c != "HMMA"))
    print_row("everything", everything)
    rows = []
    loops = {first: body for first, body in kernel.loops().items() if any(i.hmma for b in body for i in kernel.blocks[b])}
    for first in sorted(loops):
        ways = kernel.ways(first, loops[first])
        counts = {hmma: kernel.counts(blocks) for hmma, blocks in ways.items()}
        label = "  " * sum(first in other for other in loops.values()) + hex(first)
        for hmma in ways if options.ways else sorted(ways, key=lambda h: counts[h]["all"] / h)[:1]:
            print_row(label[2:], counts[hmma])
            rows.append({"loop": hex(first)} | counts[hmma])
            if options.listing:
                for i in (i for block in ways[hmma] for i in kernel.blocks[block]):
                    print(f"    {i.address:05x}  {'@' + i.predicate if i.predicate else '':<6}{i.text}")
    return {"arch": kernel.arch, "name": name} | kernel.usage | {"everything": everything, "loops": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", help="objects, libraries or cubins")
    parser.add_argument("--cuobjdump", default="cuobjdump", help="the program, if it is not on the PATH")
    parser.add_argument("--arch", help="only machine code for this, such as sm_90a")
    parser.add_argument("--kernels", default="", help="only kernels in whose mangled name this regular expression is found")
    parser.add_argument("--ways", action="store_true", help="a line for every number of HMMA that a pass can have")
    parser.add_argument("--listing", action="store_true", help="the instructions that were counted as well")
    parser.add_argument("--json", help="a file for the counts of instructions")
    options = parser.parse_args()
    reports = [{"file": path} | report(kernel, options) for path in options.files for kernel in kernels_of(path, options)]
    if not reports:
        sys.exit("sass.py: no such kernel with HMMA in these files")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(reports, file, indent=1)


if __name__ == "__main__":
    main()
