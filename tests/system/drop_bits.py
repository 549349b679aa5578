# SPDX-License-Identifier: MIT
"""Oracle of --drop-bits. It finds the scans by the bytes alone, and shares no
code with the program.

make DIR           a dataset: progressive, baseline, cut and odd files
change DIR         replace one file by a longer one
check DIR MNT BITS compare all bytes; print the bytes of a pass, the number of
                   files with a level, and that of other files
"""
import os
import subprocess
import sys


def jpeg(seed, *options):
    state, ppm = seed * 2654435761 % 2**32, bytearray(b"P6 160 120 255\n")
    for i in range(160 * 120 * 3):
        state = (state * 1664525 + 1013904223) % 2**32
        ppm.append((state >> 24) // 3 + i // 300 % 150)
    return subprocess.run(
        ["cjpeg", "-quality", "85", *options],
        input=bytes(ppm),
        stdout=subprocess.PIPE,
        check=True,
    ).stdout


def decodes(data):
    """Does djpeg decode it without a warning?"""
    result = subprocess.run(
        ["djpeg", "-outfile", "/dev/null"],
        input=data,
        stderr=subprocess.PIPE,
        check=False,
    )
    return result.returncode == 0 and not result.stderr


def put(root, name, content):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(content)


def make(root):
    for i in range(12):
        put(root, f"a/{i}.jpg", jpeg(i, "-progressive"))
        put(root, f"b/deep/{i}.jpg", jpeg(i, *["-progressive"][i % 2 :]))
    put(root, "b/grey.jpg", jpeg(50, "-progressive", "-grayscale"))
    put(root, "b/444.jpg", jpeg(51, "-progressive", "-sample", "1x1"))
    whole = jpeg(52, "-progressive")
    put(root, "b/cut.jpg", whole[: len(whole) * 2 // 3])
    put(root, "b/tail.jpg", whole + b"\xff\xd8 more bytes \xff\xda")
    put(root, "a/changed.jpg", jpeg(53, "-progressive"))
    put(root, "empty.jpg", b"")
    put(root, "notes.txt", b"\xff\xd8 no image\n" * 9)
    put(root, "large.bin", bytes(900000))


def change(root):
    put(root, "a/changed.jpg", jpeg(54, "-progressive") + b"\0\0")


def scans(data):
    """Yields (end of the scan, [(component, first, last, low bit)], is last)."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        kind, n = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if kind == 0xD9:
            return
        body = data[at + 4 : at + 2 + n]
        at += 2 + n
        if kind == 0xC2:
            yield "frame", [body[6 + 3 * c] for c in range(body[5])]
        if kind == 0xDA:
            while at < len(data) - 1 and not (
                data[at] == 0xFF and data[at + 1] not in (0, *range(0xD0, 0xD8))
            ):
                at += 1
            if at >= len(data) - 1:
                return
            ss, se, a = body[-3:]
            yield at, [(body[1 + 2 * i], ss, se, a & 15) for i in range(body[0])]


def level(data, bits):
    """The length of the prefix, or None."""
    if data[:2] != b"\xff\xd8":
        return None
    low, found = None, None
    for end, what in scans(data):
        if end == "frame":
            low = {(c, k): 99 for c in what for k in range(64)}
            continue
        if low is None:
            return None
        if found:
            return found
        for c, ss, se, al in what:
            low.update({(c, k): al for k in range(ss, se + 1)})
        if max(low.values()) <= bits:
            found = end
    return None


def check(root, mnt, bits):
    read = short = whole = 0
    for top, _, names in os.walk(root):
        for name in names:
            path = os.path.join(top, name)
            data = open(path, "rb").read()
            end = level(data, bits) if bits else None
            if end:
                data = data[:end] + b"\xff\xd9"
                if not decodes(data):
                    sys.exit(f"{path}: djpeg finds fault with its level")
            shown = os.path.join(mnt, os.path.relpath(path, root))
            with open(shown, "rb") as f:
                got = f.read()
            if got != data or os.stat(shown).st_size != len(data):
                sys.exit(f"{shown}: {len(got)} bytes, not {len(data)}")
            read += len(data)
            short += end is not None
            whole += end is None and len(data) > 0
    print(read, short, whole)


if __name__ == "__main__":
    if sys.argv[1] == "check":
        check(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        {"make": make, "change": change}[sys.argv[1]](sys.argv[2])
