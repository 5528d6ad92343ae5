"""Outputs of nvidia-smi topo -m and of all_reduce_perf as they are on real machines.

Matrices and figures are those of machines that their owners showed in public issues; columns of network cards are
shortened, and the large matrices of NVSwitch are written out in the same format.
"""

from __future__ import annotations

LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""

# 4 × H100, each with a network card of its own, whose rows and columns follow.
H100_4 = f"""
        GPU0    GPU1    GPU2    GPU3    NIC0    NIC1    NIC2    NIC3    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NV6     NV6     NV6     PIX     SYS     SYS     SYS     6,14,22,30      3               N/A
GPU1    NV6      X      NV6     NV6     SYS     PIX     SYS     SYS     4,12,20,28      1               N/A
GPU2    NV6     NV6      X      NV6     SYS     SYS     PIX     SYS     7,15,23,31      7               N/A
GPU3    NV6     NV6     NV6      X      SYS     SYS     SYS     PIX     5,13,21,29      5               N/A
NIC0    PIX     SYS     SYS     SYS      X      SYS     SYS     SYS
NIC1    SYS     PIX     SYS     SYS     SYS      X      SYS     SYS
NIC2    SYS     SYS     PIX     SYS     SYS     SYS      X      SYS
NIC3    SYS     SYS     SYS     PIX     SYS     SYS     SYS      X
{LEGEND}"""

# 4 × RTX 3090, NVLinks between two pairs of them.
BRIDGED_4 = f"""\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0     X      PHB     NV4     NODE    0-23    0               N/A
GPU1    PHB      X      NODE    NV4     0-23    0               N/A
GPU2    NV4     NODE     X      PHB     0-23    0               N/A
GPU3    NODE    NV4     PHB      X      0-23    0               N/A
{LEGEND}"""

# 2 × RTX 5090 without NVLink, with tabs as nvidia-smi prints them.
PCIE_2 = f"""\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tPHB\t0-63\t0\t\tN/A
GPU1\tPHB\t X \t0-63\t0\t\tN/A
{LEGEND}"""


def all_nvlinks(gpus: int, link: str) -> str:
    """As on machines with NVSwitches: 8 × H100 SXM have NV18, 8 × A100 SXM NV12, 16 × V100 NV6."""
    names = [f"GPU{number}" for number in range(gpus)]
    head = "\t".join(["", *names, "mlx5_0", "CPU Affinity", "NUMA Affinity"])
    lines = [
        "\t".join([one, *(" X " if one == other else link for other in names), "PIX", "0-23,48-71", "0"])
        for one in names
    ]
    return "\n".join([head, *lines, LEGEND])


RANKS = "\n".join(
    f"#  Rank  {number} Group  0 Pid  28307 on      gpu59 device  {number} [0x{16 + number}] NVIDIA H100 80GB HBM3"
    for number in range(8)
)
HEAD = """#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)"""

# The lines are those of 72 GPUs of an NVL72 rack; here as of 8 ranks of one host.
NCCL_8 = f"""# nThread 1 nGpus 8 minBytes 536870912 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20
#
# Using devices
{RANKS}
{HEAD}
   536870912     134217728     float     sum      -1   1806.7  297.16  586.06      0   1835.9  292.43  576.74      0
  4294967296    1073741824     float     sum      -1    10094  425.49  839.16      0    10141  423.54  835.32      0
  8589934592    2147483648     float     sum      -1    20299  423.16  834.57      0    20006  429.37  846.82      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 745.53
#
"""

# Of an older release: no groups, no column root, an error instead of a count; started with mpirun, which marks lines.
# Put together from parts that several people showed.
NCCL_OLD = """[0]# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20
[0]#
[0]# Using devices
[0]#   Rank  0 Pid   1320 on ip-172-31-20-228 device  0 [0x00] Tesla V100-SXM2-16GB
[0]#   Rank  1 Pid   1321 on ip-172-31-20-228 device  1 [0x00] Tesla V100-SXM2-16GB
[0]#
[0]#                                                       out-of-place                       in-place
[0]#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error
[0]#        (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
[0]     1048576        262144     float     sum   1626.5    0.64    1.24  1e-07   2302.3    0.46    0.87  1e-07
[0]   536870912     134217728     float     sum   193909    2.77    5.31  1e-07   192903    2.78    5.33  1e-07
"""


def nccl(bus_gb_s: str, *, gpus: int = 8, size: int = 2**33) -> str:
    ranks = "\n".join(RANKS.splitlines()[:gpus])
    one = f"20299  423.16  {bus_gb_s}      0"
    line = f"  {size}    {size // 4}     float     sum      -1    {one}    {one}"
    end = f"# Out of bounds values : 0 OK\n# Avg bus bandwidth    : {bus_gb_s}"
    return f"# Using devices\n{ranks}\n{HEAD}\n{line}\n{end}\n"
