"""Reading nvidia-smi topo -m and all_reduce_perf: real outputs, and what is wrong with others, by line."""

from __future__ import annotations

from decimal import Decimal

import pytest

from catalog.interconnect.reading import read_output
from catalog.interconnect.types import AllReduce, Links, UnreadableError, bytes_text, rate
from tests.catalog.interconnect.outputs import (
    BRIDGED_4,
    H100_4,
    NCCL_8,
    NCCL_OLD,
    PCIE_2,
    RANKS,
    all_nvlinks,
    nccl,
)


def links(text: str) -> Links:
    found = read_output(text).links
    assert found is not None
    return found


def reduced(text: str) -> AllReduce | None:
    return read_output(text).all_reduce


@pytest.mark.parametrize(
    ("text", "said", "pairs"),
    [
        (H100_4, "4 GPUs, all NV6", {"NV6": 6}),
        (BRIDGED_4, "4 GPUs: 2 pairs NV4, 2 pairs PHB, 2 pairs NODE", {"NV4": 2, "PHB": 2, "NODE": 2}),
        (PCIE_2, "2 GPUs, all PHB", {"PHB": 1}),
        (all_nvlinks(8, "NV18"), "8 GPUs, all NV18", {"NV18": 28}),
        (all_nvlinks(16, "NV6"), "16 GPUs, all NV6", {"NV6": 120}),
    ],
    ids=["4 H100 with cards", "4 GPUs with bridges", "2 GPUs over PCIe", "8 H100 SXM", "16 V100"],
)
def test_a_matrix_gives_the_links_of_all_pairs(text: str, said: str, pairs: dict[str, int]) -> None:
    found = links(text)
    assert (found.text, found.pairs) == (said, pairs)
    assert found.rows[0][0] == "X"


def test_links_are_equal_in_whatever_order_gpus_are_numbered() -> None:
    """Bridges between 0 and 1, and 2 and 3, instead of 0 and 2, and 1 and 3."""
    other = links(BRIDGED_4)
    order = (0, 2, 1, 3)
    same = Links(tuple(tuple(other.rows[one][two] for two in order) for one in order))
    assert same.rows != other.rows
    assert same.shape == other.shape
    assert same.shape != links(H100_4).shape


def test_of_a_table_the_largest_message_counts() -> None:
    assert reduced(NCCL_8) == AllReduce(8, 8589934592, Decimal("834.57"))
    assert reduced(NCCL_OLD) == AllReduce(2, 536870912, Decimal("5.31"))


def test_the_log_of_one_job_has_both() -> None:
    found = read_output(f"Mon Nov 16 09:00:00 2026\n{all_nvlinks(8, 'NV18')}\n{NCCL_8}")
    assert found.links is not None
    assert found.all_reduce is not None
    assert (found.links.gpus, found.all_reduce.text) == (8, "all_reduce 835 GB/s (8 GPUs, 8 GiB)")


H100_LINES = H100_4.splitlines()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "contains neither"),
        ("Failed to initialize NVML: Driver/library version mismatch", "contains neither"),
        ("\n".join(H100_LINES[:4]), "Line 5: the row of GPU2 is missing."),
        (H100_4.replace("GPU2    NV6", "GPU9    NV6"), "Line 5: the row of GPU2 is missing."),
        ("\n".join([*H100_LINES[:5], "GPU3    NV6     NV6"]), "Line 6: GPU3 has 2 of 4 links."),
        (H100_4.replace("GPU1    NV6 ", "GPU1    XY9 "), "Line 4: “XY9” is no link of GPU1 to GPU0"),
        (H100_4.replace("GPU1    NV6 ", "GPU1    X   "), "Line 4: “X” is no link of GPU1 to GPU0"),
        (H100_4.replace("GPU1    NV6 ", "GPU1    NV4 "), "Line 4: GPU1 has NV4 to GPU0, and line 3 says NV6."),
        ("\tGPU0\tCPU Affinity\nGPU0\t X \t0-3", "Line 1: nvidia-smi topo -m shows 1 GPU"),
        (NCCL_8.replace(RANKS, ""), "which says how many GPUs took part"),
        (
            NCCL_8.replace("Rank  1 Group  0 Pid  28307 on      gpu59", "Rank  1 Group  0 Pid  1 on      gpu60"),
            "2 hosts",
        ),
        (nccl("371.2", gpus=1), "ran on 1 GPU"),
        (nccl("0.00"), "measured nothing"),
        (nccl("0.001"), "is below 0.01 GB/s: the test measured nothing"),
        (NCCL_8.replace("8589934592    ", f"{2**63}   "), "Line 18: “9223372036854775808” is no size in bytes"),
        (NCCL_8.replace("8589934592    ", "²             "), "Line 18: “²” is no size in bytes"),
        (NCCL_8.replace("size         count", "count         size"), "the header is not size … redop … busbw"),
        (NCCL_8.replace("Rank  1 ", f"Rank  {'1' * 5000} "), "Line 5: “11111111111111111111” is no number of a rank"),
        (H100_4.replace("GPU2    GPU3    NIC0", "GPU2    GPU2    NIC0"), "Line 2: the header has a GPU twice."),
        ("GPU0 GPU0\nGPU0 X X\nGPU0 X X", "Line 1: the header has a GPU twice."),
        (all_nvlinks(2, "NV1000"), "is no link of GPU0 to GPU1"),
        (nccl("fast"), "Line 14: “fast” is no bandwidth"),
        (nccl("nan"), "Line 14: “nan” is no bandwidth"),
        (NCCL_8.replace(": 0 OK", ": 17 FAILED"), "Line 19: results were wrong"),
        (NCCL_8.replace("float     sum", "float    none"), "Line 16: it is not of all_reduce_perf"),
        ("# Collective test starting: all_gather_perf\n" + NCCL_8, "Line 1: it is of all_gather_perf"),
        ("\n".join(NCCL_8.splitlines()[:15]), "there is no result below the header"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line_and_what_to_do(text: str, words: str) -> None:
    with pytest.raises(UnreadableError) as found:
        read_output(text)
    said = found.value.sentence
    assert words in said
    assert any(
        way in said for way in ("Paste the whole", "Measure with all", "Run it", "Record only", "Check the GPUs")
    ), said


def test_figures_as_text() -> None:
    assert [bytes_text(size) for size in (2**33, 3 * 2**29, 5, 2**40)] == ["8 GiB", "1536 MiB", "5 bytes", "1 TiB"]
    assert [rate(Decimal(one)) for one in ("371.42", "5.31", "99.96")] == ["371 GB/s", "5.3 GB/s", "100.0 GB/s"]
