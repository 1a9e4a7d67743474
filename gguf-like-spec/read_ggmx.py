#!/usr/bin/env python3
"""An independent reader of .ggmx files, written from README.md beside it: it proves that the text is complete.

    read_ggmx.py dump FILE                        everything but the data, as JSON
    read_ggmx.py tensor FILE NAME [--out RAW]     one tensor as float32 (i32 as int32): the first values, or all of them into RAW
    read_ggmx.py check FILE                       all rules of section 7 and all digests

Needs Python 3.8 and the shared libraries zstd and xxHash (Debian: libzstd1 libxxhash0).
"""

import argparse
import array
import ctypes
import ctypes.util
import json
import mmap
import struct
import sys

MAGIC, BYTE_ORDER, VERSION = b"GGMX", 0x0A0B0C0D, 1
HEADER = struct.Struct("<4sIIIQIIQQ16s16s16s")
DOCUMENT = struct.Struct("<IIQQQ16s")
TENSOR = struct.Struct("<IIIIII4QQQQQ16s")
ROLES = ["dense", "attention", "router", "expert", "shared_expert", "norm", "embedding", "output", "table"]
EXPERT = ROLES.index("expert")
# name, values per block, bytes per block, whether it is a block type
TYPES = [("f32", 1, 4, False), ("f16", 1, 2, False), ("bf16", 1, 2, False), ("i32", 1, 4, False), ("q8_0", 32, 34, True),
         ("q4_0", 32, 18, True), ("q4_1", 32, 20, True), ("q4_k", 256, 144, True), ("q6_k", 256, 210, True),
         ("mxfp4", 32, 17, True), ("mxfp8", 32, 33, True), ("f8_e4m3", 1, 1, False)]
LAYOUTS = ["row_major", "tile16"]
MAX_BYTES = 1 << 62


class Broken(Exception):
    """What is wrong with the file, for people."""


def check(condition, message):
    if not condition:
        raise Broken(message)


# --- the two libraries ------------------------------------------------------------------------------------------------


def load_library(name, soname, package):
    for candidate in (soname, ctypes.util.find_library(name)):
        try:
            if candidate:
                return ctypes.CDLL(candidate)
        except OSError:
            pass
    sys.exit(f"read_ggmx.py needs the shared library {soname} (Debian and Ubuntu: apt-get install {package})")


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


xxhash = load_library("xxhash", "libxxhash.so.0", "libxxhash0")
xxhash.XXH3_128bits.restype = Hash128
xxhash.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
zstd = load_library("zstd", "libzstd.so.1", "libzstd1")
zstd.ZSTD_decompress.restype = ctypes.c_size_t
zstd.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
zstd.ZSTD_findFrameCompressedSize.restype = ctypes.c_size_t
zstd.ZSTD_findFrameCompressedSize.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
zstd.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
zstd.ZSTD_getFrameContentSize.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
zstd.ZSTD_isError.restype = ctypes.c_uint
zstd.ZSTD_isError.argtypes = [ctypes.c_size_t]


def digest(data):
    hashed = xxhash.XXH3_128bits(data, len(data))
    return struct.pack("<QQ", hashed.low, hashed.high)


def digest_text(raw):
    low, high = struct.unpack("<QQ", raw)
    return f"{high:016x}{low:016x}"


def expand_first_frame(data, size, what):
    """Content of the frame that data begins with, and the rest of data."""
    frame_bytes = zstd.ZSTD_findFrameCompressedSize(data, len(data))
    check(not zstd.ZSTD_isError(frame_bytes), f"{what}: no zstd frame")
    check(zstd.ZSTD_getFrameContentSize(data, len(data)) == size, f"{what}: the frame does not state {size} bytes")
    out = ctypes.create_string_buffer(max(size, 1))
    check(zstd.ZSTD_decompress(out, size, data, frame_bytes) == size, f"{what}: the frame is damaged")
    return out.raw[:size], data[frame_bytes:]


# --- structure --------------------------------------------------------------------------------------------------------


def round_up(value, multiple):
    return -(-value // multiple) * multiple


def product(values):
    result = 1
    for value in values:
        result *= value
    return result


class Document:
    def __init__(self, entry, name):
        _, self.reserved, self.offset, self.stored_bytes, self.raw_bytes, self.digest = entry
        self.name = name


class Tensor:
    def __init__(self, entry, name):
        _, self.dtype, self.role, self.layout, self.rank, self.flags = entry[:6]
        self.all_extents = entry[6:10]
        self.offset, self.stored_bytes, self.raw_bytes, self.expert_stride, self.digest = entry[10:]
        self.name = name

    def validate(self):
        what = f"tensor {self.name}"
        check(self.dtype < len(TYPES), f"{what}: unknown dtype {self.dtype}")
        check(self.role < len(ROLES), f"{what}: unknown role {self.role}")
        self.type_name, self.block_len, self.block_bytes, self.is_block = TYPES[self.dtype]
        check(self.layout == (1 if self.is_block else 0), f"{what}: layout {self.layout} does not suit {self.type_name}")
        check(1 <= self.rank <= 4, f"{what}: rank {self.rank}")
        check(self.flags & ~1 == 0, f"{what}: unknown flags {self.flags:#x}")
        self.compressed = bool(self.flags & 1)
        self.extents = self.all_extents[:self.rank]
        check(all(e >= 1 for e in self.extents), f"{what}: an extent is 0")
        check(not any(self.all_extents[self.rank:]), f"{what}: extents beyond the rank")
        if self.is_block:
            check(self.rank >= 2, f"{what}: {self.type_name} needs a matrix")
            check(self.block_len == 32 or self.extents[-1] % 256 == 0, f"{what}: rows of {self.extents[-1]} values")
        self.lay_out(what)

    def lay_out(self, what):
        is_expert = self.role == EXPERT
        stacked = is_expert and self.rank == 3
        if is_expert:
            check(self.rank <= 3 and self.extents[0] <= 65536, f"{what}: no shape for experts")
            check(stacked or not self.is_block, f"{what}: experts of a block type have three extents")
        self.n_slices = self.extents[0] if stacked else 1
        total = product(self.extents[:-2]) * self.matrix_bytes()
        check(total <= MAX_BYTES, f"{what}: too large")
        self.slice_bytes = total // self.n_slices
        self.stride = self.slice_bytes
        if stacked and not self.compressed and self.slice_bytes >= 262144:
            self.stride = round_up(self.slice_bytes, 4096)
        self.alignment = 4096 if is_expert and not self.compressed else 64
        raw_bytes = (self.n_slices - 1) * self.stride + self.slice_bytes
        check(self.raw_bytes == raw_bytes, f"{what}: raw_bytes is {self.raw_bytes} instead of {raw_bytes}")
        stride = 0 if not is_expert else self.stride if stacked else self.slice_bytes // self.extents[0]
        check(self.expert_stride == stride, f"{what}: expert_stride is {self.expert_stride} instead of {stride}")
        check(self.compressed or self.stored_bytes == self.raw_bytes, f"{what}: stored_bytes differs from raw_bytes")
        check(self.raw_bytes <= 32768 * self.stored_bytes, f"{what}: it expands too far")

    def matrix_bytes(self):
        n_in = self.extents[-1]
        n_out = self.extents[-2] if self.rank > 1 else 1
        if not self.is_block:
            return n_out * n_in * self.block_bytes
        return -(-n_out // 16) * -(-n_in // self.block_len) * 16 * self.block_bytes


class ModelFile:
    def __init__(self, path):
        check(not path.endswith(".partial"), "a .partial file is not finished")
        with open(path, "rb") as f:
            try:
                self.bytes = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError:
                raise Broken("the file is empty") from None
        self.read_header()
        self.read_index()

    def read_header(self):
        data = self.bytes
        check(data[:4] == MAGIC, "no .ggmx file: it does not begin with GGMX")
        check(len(data) >= HEADER.size, "the file is cut short within its header")
        (_, byte_order, self.version, header_bytes, file_bytes, self.n_documents, self.n_tensors, self.names_bytes,
         self.documents_bytes, self.index_digest, self.documents_digest, header_digest) = HEADER.unpack_from(data)
        check(byte_order == BYTE_ORDER, f"byte order mark {byte_order:#010x}: the other byte order is not supported")
        check(self.version == VERSION, f"format version {self.version}; this reader knows {VERSION}")
        check(header_bytes == HEADER.size, f"a header of {header_bytes} bytes")
        check(digest(data[:80]) == header_digest, "header_digest is wrong")
        check(file_bytes == len(data), f"the file has {len(data)} bytes, its header says {file_bytes}")

    def read_index(self):
        data = self.bytes
        names_at = HEADER.size + self.n_documents * DOCUMENT.size + self.n_tensors * TENSOR.size
        documents_at = names_at + self.names_bytes
        documents_end = documents_at + self.documents_bytes
        check(documents_end <= len(data), "index and documents do not fit the file")
        check(digest(data[HEADER.size:documents_at]) == self.index_digest, "index_digest is wrong")
        check(digest(data[documents_at:documents_end]) == self.documents_digest, "documents_digest is wrong")

        self.names = data[names_at:documents_at]
        entries_at, position = HEADER.size, documents_at
        self.documents, self.tensors = {}, {}
        for i in range(self.n_documents):
            entry = DOCUMENT.unpack_from(data, entries_at + i * DOCUMENT.size)
            document = Document(entry, self.next_name(entry[0], self.documents))
            position = self.place_document(document, position, documents_end)
            self.documents[document.name] = document
        check(position == documents_end, "documents_bytes is wrong")
        entries_at += self.n_documents * DOCUMENT.size
        for i in range(self.n_tensors):
            entry = TENSOR.unpack_from(data, entries_at + i * TENSOR.size)
            tensor = Tensor(entry, self.next_name(entry[0], self.tensors))
            tensor.validate()
            start = round_up(position, tensor.alignment)
            check(tensor.offset == start, f"tensor {tensor.name}: offset {tensor.offset} instead of {start}")
            position = start + tensor.stored_bytes
            check(position <= len(data), f"tensor {tensor.name} reaches beyond the end of the file")
            self.tensors[tensor.name] = tensor
        check(not self.names, "names_bytes is wrong")
        check(position == len(data), f"{len(data) - position} bytes follow the last tensor")

    def next_name(self, size, taken):
        check(1 <= size <= min(1024, len(self.names)), f"a name of {size} bytes")
        raw, self.names = self.names[:size], self.names[size:]
        try:
            name = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise Broken(f"a name that is no UTF-8: {raw!r}") from None
        check(not any(ord(c) < 32 or ord(c) == 127 for c in name), f"control characters in the name {name!r}")
        check(name not in taken, f"duplicate name {name}")
        return name

    @staticmethod
    def place_document(document, position, end):
        what = f"document {document.name}"
        check("/" not in document.name and document.name not in (".", ".."), f"{what}: no plain file name")
        check(document.reserved == 0, f"{what}: reserved is not 0")
        check(document.offset == position, f"{what}: offset {document.offset} instead of {position}")
        check(document.stored_bytes <= end - position, f"{what}: it reaches beyond the documents' end")
        limit = min(1 << 30, (64 << 20) + 64 * document.stored_bytes)
        check(document.raw_bytes <= limit, f"{what}: it expands too far")
        return position + document.stored_bytes

    def document(self, name):
        document = self.documents[name]
        what = f"document {name}"
        frame = self.bytes[document.offset:document.offset + document.stored_bytes]
        text, rest = expand_first_frame(frame, document.raw_bytes, what)
        check(not rest, f"{what}: bytes after its frame")
        check(digest(text) == document.digest, f"{what}: its digest is wrong")
        return text

    def slices(self, tensor):
        """The expanded slices one after the other; then the digest is checked."""
        digests, position = [], tensor.offset
        frames = self.bytes[position:position + tensor.stored_bytes] if tensor.compressed else b""
        for i in range(tensor.n_slices):
            if tensor.compressed:
                data, frames = expand_first_frame(frames, tensor.slice_bytes, f"tensor {tensor.name}")
            else:
                data = self.bytes[position + i * tensor.stride:position + i * tensor.stride + tensor.slice_bytes]
            digests.append(digest(data))
            yield data
        check(not frames, f"tensor {tensor.name}: bytes after its last frame")
        total = digests[0] if len(digests) == 1 else digest(b"".join(digests))
        check(total == tensor.digest, f"tensor {tensor.name}: its digest is wrong")


# --- values -----------------------------------------------------------------------------------------------------------

E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
E2M1 += [-v for v in E2M1]


def e4m3(code):
    sign = -1.0 if code & 0x80 else 1.0
    exponent, mantissa = (code >> 3) & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return float("nan")
    return sign * (mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0**(exponent - 10))


E4M3 = [e4m3(code) for code in range(256)]


def nibble(tile, at, r, k):
    byte = tile[at + ((k % 16) // 4) * 64 + r * 4 + k % 4]
    return byte & 15 if k < 16 else byte >> 4


def f16s(tile, at):
    return struct.unpack_from("<16e", tile, at)


def decode_q8_0(tile, r):
    d = f16s(tile, 512)[r]
    codes = struct.unpack_from("<512b", tile)
    return [d * codes[(k // 4) * 64 + r * 4 + k % 4] for k in range(32)]


def decode_q4_0(tile, r):
    d = f16s(tile, 256)[r]
    return [d * (nibble(tile, 0, r, k) - 8) for k in range(32)]


def decode_q4_1(tile, r):
    d, m = f16s(tile, 256)[r], f16s(tile, 288)[r]
    return [d * nibble(tile, 0, r, k) + m for k in range(32)]


def decode_mxfp4(tile, r):
    scale = 2.0**(tile[256 + r] - 127)
    return [scale * E2M1[nibble(tile, 0, r, k)] for k in range(32)]


def decode_mxfp8(tile, r):
    scale = 2.0**(tile[512 + r] - 127)
    return [scale * E4M3[tile[(k // 4) * 64 + r * 4 + k % 4]] for k in range(32)]


def decode_q4_k(tile, r):
    d, dmin = f16s(tile, 2240)[r], f16s(tile, 2272)[r]
    values = []
    for b in range(8):
        lo = tile[2048 + b * 16 + r]
        hi = tile[2176 + (b // 2) * 16 + r] >> (4 * (b % 2))
        sc, mn = (lo & 15) | (hi & 3) << 4, lo >> 4 | (hi >> 2 & 3) << 4
        values += [d * sc * nibble(tile, b * 256, r, k) - dmin * mn for k in range(32)]
    return values


def decode_q6_k(tile, r):
    d = f16s(tile, 3328)[r]
    scales = struct.unpack_from("<256b", tile, 3072)
    values = []
    for k in range(256):
        b, p = k // 32, k % 32
        hi = tile[2048 + b * 128 + ((p % 16) // 8) * 64 + r * 4 + p % 4] >> (4 * (p // 16) + 2 * (p // 4 % 2))
        q = nibble(tile, b * 256, r, p) | (hi & 3) << 4
        values.append(d * scales[(k // 16) * 16 + r] * (q - 32))
    return values


BLOCKS = {"q8_0": decode_q8_0, "q4_0": decode_q4_0, "q4_1": decode_q4_1, "q4_k": decode_q4_k, "q6_k": decode_q6_k,
          "mxfp4": decode_mxfp4, "mxfp8": decode_mxfp8}


def plain_values(type_name, data):
    """Plain values as an array; i32 stays an array of integers."""
    if type_name in ("f32", "i32"):
        values = array.array("f" if type_name == "f32" else "i")
        values.frombytes(data)
        if sys.byteorder == "big":
            values.byteswap()
        return values
    if type_name == "f16":
        return array.array("f", struct.unpack(f"<{len(data) // 2}e", data))
    if type_name == "bf16":
        widened = b"".join(b"\0\0" + data[i:i + 2] for i in range(0, len(data), 2))
        return plain_values("f32", widened)
    return array.array("f", [E4M3[code] for code in data])


def matrix_values(tensor, data):
    """One [n_out, n_in] matrix of a block type, row-major."""
    n_out, n_in = tensor.extents[-2:]
    n_blocks = -(-n_in // tensor.block_len)
    tile_bytes = 16 * tensor.block_bytes
    values = array.array("f")
    for i in range(n_out):
        row = []
        for b in range(n_blocks):
            at = ((i // 16) * n_blocks + b) * tile_bytes
            row += BLOCKS[tensor.type_name](data[at:at + tile_bytes], i % 16)
        values.extend(row[:n_in])
    return values


def tensor_values(file, tensor):
    values = array.array("i" if tensor.type_name == "i32" else "f")
    for data in file.slices(tensor):
        if not tensor.is_block:
            values.extend(plain_values(tensor.type_name, data))
            continue
        for at in range(0, len(data), tensor.matrix_bytes()):
            values.extend(matrix_values(tensor, data[at:at + tensor.matrix_bytes()]))
    return values


# --- commands ---------------------------------------------------------------------------------------------------------


def command_dump(file, _):
    documents = [{"name": d.name, "offset": d.offset, "stored_bytes": d.stored_bytes, "raw_bytes": d.raw_bytes,
                  "digest": digest_text(d.digest)} for d in file.documents.values()]
    tensors = [{"name": t.name, "dtype": t.type_name, "role": ROLES[t.role], "layout": LAYOUTS[t.layout],
                "extents": list(t.extents), "offset": t.offset, "stored_bytes": t.stored_bytes, "raw_bytes": t.raw_bytes,
                "expert_stride": t.expert_stride, "compressed": t.compressed, "digest": digest_text(t.digest)}
               for t in file.tensors.values()]
    print(json.dumps({"version": file.version, "file_bytes": len(file.bytes), "documents": documents,
                      "tensors": tensors}, indent=1, ensure_ascii=False))


def command_tensor(file, args):
    check(args.name in file.tensors, f"there is no tensor called {args.name}")
    tensor = file.tensors[args.name]
    values = tensor_values(file, tensor)
    if args.out:
        with open(args.out, "wb") as out:
            values.tofile(out)
    else:
        print(f"{tensor.name}: {tensor.type_name} {list(tensor.extents)}")
        print(" ".join(f"{v:g}" for v in values[:64]), "..." if len(values) > 64 else "")


def command_check(file, _):
    for name in file.documents:
        file.document(name)
    for tensor in file.tensors.values():
        for _slice in file.slices(tensor):
            pass
    print(f"{len(file.documents)} documents and {len(file.tensors)} tensors are as their digests say")


def main():
    parser = argparse.ArgumentParser(description="Reads .ggmx files.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (("dump", "print everything but the data as JSON"), ("tensor", "print or save one tensor's values"),
                       ("check", "check all rules and digests")):
        command = commands.add_parser(name, help=text)
        command.add_argument("file")
        if name == "tensor":
            command.add_argument("name")
            command.add_argument("--out", help="write all values here: float32 (int32 for i32), native byte order")
    args = parser.parse_args()
    try:
        {"dump": command_dump, "tensor": command_tensor, "check": command_check}[args.command](ModelFile(args.file), args)
    except (Broken, OSError) as error:
        sys.exit(f"{args.file}: {error}")


if __name__ == "__main__":
    main()
