//! The rule files that muster brings.

/// Name and text of each.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("amd.toml", include_str!("../../../assets/log-rules/amd.toml")),
    ("benign.toml", include_str!("../../../assets/log-rules/benign.toml")),
    ("cuda.toml", include_str!("../../../assets/log-rules/cuda.toml")),
    ("kernel.toml", include_str!("../../../assets/log-rules/kernel.toml")),
    ("mpi.toml", include_str!("../../../assets/log-rules/mpi.toml")),
    ("muster.toml", include_str!("../../../assets/log-rules/muster.toml")),
    ("nccl.toml", include_str!("../../../assets/log-rules/nccl.toml")),
    ("network.toml", include_str!("../../../assets/log-rules/network.toml")),
    ("nvidia.toml", include_str!("../../../assets/log-rules/nvidia.toml")),
    ("progress.toml", include_str!("../../../assets/log-rules/progress.toml")),
    ("python.toml", include_str!("../../../assets/log-rules/python.toml")),
    ("pytorch.toml", include_str!("../../../assets/log-rules/pytorch.toml")),
    ("slurm.toml", include_str!("../../../assets/log-rules/slurm.toml")),
    ("storage.toml", include_str!("../../../assets/log-rules/storage.toml")),
];
