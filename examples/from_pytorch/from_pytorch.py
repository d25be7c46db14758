"""Which rows of a tensor are new? A warpset table that is offered PyTorch's device memory, without a copy.

    cargo build --release --example from_pytorch
    python3 examples/from_pytorch/from_pytorch.py target/release/examples/libfrom_pytorch.so

Needs a GPU and PyTorch. Compares every outcome with torch.unique, and exits with 0 if they agree.
"""

import ctypes
import sys

import torch

NEW, SEEN, FULL = 1, 2, 3


class Table:
    """A set of rows of `width` 32-bit words in the memory of a GPU."""

    def __init__(self, library, device, width, capacity):
        self.lib, self.device, self.width = library, device, width
        self.table = ctypes.c_void_p()
        self._check(library.warpset_new(ctypes.c_size_t(device.index), ctypes.c_size_t(width), ctypes.c_uint64(capacity),
                                        ctypes.byref(self.table)))

    def _check(self, status):
        if status != 0:
            raise RuntimeError(self.lib.warpset_error().decode())

    def find_or_put(self, rows):
        """The outcome of each row of an int32 tensor (count, width), and its slot: tensors, ready when the current stream is."""
        if rows.dtype != torch.int32 or rows.dim() != 2 or rows.shape[1] != self.width or not rows.is_contiguous():
            raise ValueError(f"contiguous int32 rows of {self.width} words are needed, not {rows.dtype} {tuple(rows.shape)}")
        if rows.device != self.device:
            raise ValueError(f"the table is on {self.device}, the rows are on {rows.device}")
        outcomes = torch.zeros(len(rows), dtype=torch.uint8, device=rows.device)
        slots = torch.zeros(len(rows), dtype=torch.int64, device=rows.device)
        stream = torch.cuda.current_stream(self.device)
        self._check(self.lib.warpset_find_or_put(
            self.table, ctypes.c_uint64(rows.data_ptr()), ctypes.c_size_t(len(rows)), ctypes.c_uint64(outcomes.data_ptr()),
            ctypes.c_uint64(slots.data_ptr()), ctypes.c_uint64(0), ctypes.c_void_p(stream.cuda_stream)))
        # The kernel reads the rows after this function has returned: PyTorch must not reuse their memory before.
        rows.record_stream(stream)
        return outcomes, slots

    def __len__(self):
        stored = ctypes.c_uint64()
        self._check(self.lib.warpset_len(self.table, ctypes.byref(stored)))
        return stored.value

    def close(self):
        self.lib.warpset_free(self.table)


def main():
    library = ctypes.CDLL(sys.argv[1])
    library.warpset_error.restype = ctypes.c_char_p
    device = torch.device("cuda", 0)
    torch.manual_seed(1)
    table = Table(library, device, 4, 4_000_000)
    pool = torch.randint(-(2**31), 2**31, (1_000_000, 4), dtype=torch.int32, device=device)
    for stream in [torch.cuda.current_stream(device), torch.cuda.Stream(device)]:
        stream.wait_stream(torch.cuda.default_stream(device))
        with torch.cuda.stream(stream):
            before = len(table)
            rows = pool[torch.randint(0, len(pool), (2_000_000,), device=device)].contiguous()
            outcomes, slots = table.find_or_put(rows)
            distinct, inverse = torch.unique(rows, dim=0, return_inverse=True)
            new = int((outcomes == NEW).sum())
            assert int((outcomes == FULL).sum()) == 0
            assert new == len(table) - before, (new, len(table), before)
            # Equal rows have one slot, different rows have different slots.
            slot_of = torch.full((len(distinct),), -1, dtype=torch.int64, device=device)
            slot_of[inverse] = slots
            assert bool((slot_of[inverse] == slots).all()) and len(torch.unique(slot_of)) == len(distinct)
            if before == 0:
                assert new == len(distinct), (new, len(distinct))
            again, _ = table.find_or_put(rows)
            assert bool((again == SEEN).all())
        print(f"{len(rows)} rows offered, {len(distinct)} distinct, {new} new, {len(table)} stored")
    try:
        table.find_or_put(pool.cpu())
        raise AssertionError("rows in host memory are refused")
    except ValueError as error:
        print(f"refused: {error}")
    table.close()
    print("agrees with torch.unique")


if __name__ == "__main__":
    main()
