//! Which part of a node a number speaks of.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A part of a node, precise enough to be replaced. Evidence is weighed per component: two metrics of one disk speak of
/// the same thing, metrics of two GPUs do not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Component {
    /// All processors of the node together.
    Cpu,
    /// One logical processor.
    Core(u32),
    /// Memory as all processors see it.
    Memory,
    /// The storage that was measured; a name where there are several.
    Disk(Option<String>),
    /// Network: one adapter by name, or the node's own network stack.
    Nic(Option<String>),
    /// An InfiniBand port, such as `mlx5_0/1`.
    IbPort(String),
    /// One GPU by its index on the node.
    Gpu(u32),
    /// All GPUs of the node working together.
    Gpus,
    /// The way between two GPUs of the node, lower index first.
    GpuLink(u32, u32),
    /// What an application sees: everything together.
    Application,
    /// The node as a whole: power, kernel, clock, link.
    Node,
}

/// What kind of part it is, whichever of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComponentKind {
    /// [`Component::Cpu`].
    Cpu,
    /// [`Component::Core`].
    Core,
    /// [`Component::Memory`].
    Memory,
    /// [`Component::Disk`].
    Disk,
    /// [`Component::Nic`].
    Nic,
    /// [`Component::IbPort`].
    IbPort,
    /// [`Component::Gpu`].
    Gpu,
    /// [`Component::Gpus`].
    Gpus,
    /// [`Component::GpuLink`].
    GpuLink,
    /// [`Component::Application`].
    Application,
    /// [`Component::Node`].
    Node,
}

impl Component {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> ComponentKind {
        match self {
            Self::Cpu => ComponentKind::Cpu,
            Self::Core(_) => ComponentKind::Core,
            Self::Memory => ComponentKind::Memory,
            Self::Disk(_) => ComponentKind::Disk,
            Self::Nic(_) => ComponentKind::Nic,
            Self::IbPort(_) => ComponentKind::IbPort,
            Self::Gpu(_) => ComponentKind::Gpu,
            Self::Gpus => ComponentKind::Gpus,
            Self::GpuLink(..) => ComponentKind::GpuLink,
            Self::Application => ComponentKind::Application,
            Self::Node => ComponentKind::Node,
        }
    }
}

impl ComponentKind {
    /// The word used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Core => "core",
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Nic => "nic",
            Self::IbPort => "ib-port",
            Self::Gpu => "gpu",
            Self::Gpus => "gpus",
            Self::GpuLink => "gpu-link",
            Self::Application => "application",
            Self::Node => "node",
        }
    }
}

impl fmt::Display for ComponentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Component {
    /// `core:3`, `gpu-link:0-1`, `disk`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind();
        match self {
            Self::Core(n) | Self::Gpu(n) => write!(f, "{kind}:{n}"),
            Self::GpuLink(a, b) => write!(f, "{kind}:{a}-{b}"),
            Self::IbPort(name) | Self::Disk(Some(name)) | Self::Nic(Some(name)) => write!(f, "{kind}:{name}"),
            _ => f.write_str(kind.name()),
        }
    }
}

/// Text that names no component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no component is called so")]
pub struct NoComponent;

impl FromStr for Component {
    type Err = NoComponent;

    /// Reads what [`fmt::Display`] writes.
    fn from_str(text: &str) -> Result<Self, NoComponent> {
        let (kind, which) = text.split_once(':').map_or((text, None), |(kind, which)| (kind, Some(which)));
        let number = |text: &str| text.parse::<u32>().map_err(|_| NoComponent);
        let name = || which.filter(|name| !name.is_empty()).map(str::to_owned);
        let component = match kind {
            "core" => Self::Core(number(which.ok_or(NoComponent)?)?),
            "gpu" => Self::Gpu(number(which.ok_or(NoComponent)?)?),
            "gpu-link" => {
                let (a, b) = which.and_then(|which| which.split_once('-')).ok_or(NoComponent)?;
                Self::GpuLink(number(a)?, number(b)?)
            }
            "ib-port" => Self::IbPort(name().ok_or(NoComponent)?),
            "disk" => Self::Disk(name()),
            "nic" => Self::Nic(name()),
            _ => {
                let whole = [Self::Cpu, Self::Memory, Self::Gpus, Self::Application, Self::Node];
                return whole.into_iter().find(|one| one.kind().name() == text).ok_or(NoComponent);
            }
        };
        Ok(component)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_named_by_its_kind_and_which_of_them_it_is() {
        assert_eq!(Component::Gpu(3).to_string(), "gpu:3");
        assert_eq!(Component::GpuLink(0, 7).to_string(), "gpu-link:0-7");
        assert_eq!(Component::Disk(None).to_string(), "disk");
        assert_eq!(Component::Nic(Some("eth0".into())).to_string(), "nic:eth0");
    }

    #[test]
    fn what_names_no_component_is_none() {
        for text in ["", "gpu", "gpu:", "gpu:x", "gpu:-1", "gpu-link:3", "gpu-link:3-", "ib-port:", "cpu:3", "Cpu"] {
            assert_eq!(text.parse::<Component>(), Err(NoComponent), "{text}");
        }
        assert_eq!("gpu-link:0-7".parse(), Ok(Component::GpuLink(0, 7)));
    }
}
