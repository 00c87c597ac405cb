//! What a rule reads out of a line besides its meaning.

use std::borrow::Cow;

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// What a rule reads out of a line; the names of groups in expressions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Field { $($(#[$doc])* $name,)* }

        impl Field {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Name of its group in an expression.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

fields! {
    /// Rank in the whole job.
    Rank = "rank",
    /// Rank in one communicator or process group.
    GroupRank = "group_rank",
    /// Rank on its node.
    LocalRank = "local_rank",
    /// Ranks of a communicator or job.
    Ranks = "ranks",
    /// The other end: a host or an address.
    Peer = "peer",
    /// Rank of the other end in the communicator.
    PeerRank = "peer_rank",
    /// A host that the line names.
    Host = "host",
    /// Process.
    Pid = "pid",
    /// Thread.
    Tid = "tid",
    /// Name of a process or program.
    Process = "process",
    /// Adapter, disk or other device by the kernel's name.
    Device = "device",
    /// Port of an adapter, or a TCP port.
    Port = "port",
    /// PCI address.
    Bus = "bus",
    /// GPU by its index on the node.
    Gpu = "gpu",
    /// Number of a link or switch port.
    Link = "link",
    /// A processor or a memory module.
    Element = "element",
    /// Address of a communicator in its process.
    Comm = "comm",
    /// Identity of a communicator over all ranks.
    CommId = "comm_id",
    /// Process group: its name, or its number.
    Group = "group",
    /// Collective or operation.
    Op = "op",
    /// Sequence number of a collective, decimal.
    Seq = "seq",
    /// Count of operations, hexadecimal.
    OpCount = "op_count",
    /// Last sequence number enqueued.
    Enqueued = "enqueued",
    /// Last sequence number completed.
    Completed = "completed",
    /// Elements or bytes.
    Count = "count",
    /// Elements that come out.
    CountOut = "count_out",
    /// Type of the elements.
    Dtype = "dtype",
    /// Number by which a table's row is found.
    Code = "code",
    /// Status of a completion.
    Status = "status",
    /// The vendor's own error number.
    Vendor = "vendor",
    /// Error of the operating system, number or words.
    Errno = "errno",
    /// Source file.
    File = "file",
    /// Line of the source file.
    Line = "line",
    /// Function.
    Function = "function",
    /// Class of an exception.
    Exception = "exception",
    /// What the program says.
    Message = "message",
    /// Step or iteration.
    Step = "step",
    /// Steps in all.
    Steps = "steps",
    /// Seconds.
    Seconds = "seconds",
    /// Milliseconds.
    Millis = "millis",
    /// Steps a second.
    Rate = "rate",
    /// Server of a file system.
    Server = "server",
    /// A path.
    Path = "path",
    /// Job of the scheduler.
    Job = "job",
    /// Signal that ended a process.
    Signal = "signal",
    /// Exit code of a process.
    Exit = "exit",
    /// Version of a program.
    Version = "version",
}

impl Field {
    /// The field of a group.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|field| field.name() == name)
    }
}

/// What a rule read out of one line, in the order of the line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields<'a>(pub(crate) Vec<(Field, Cow<'a, str>)>);

impl Fields<'_> {
    /// The text of a field.
    #[must_use]
    pub fn get(&self, field: Field) -> Option<&str> {
        self.0.iter().find(|(of, _)| *of == field).map(|(_, text)| text.as_ref())
    }

    /// A field that is a whole number: decimal, or hexadecimal with `0x` and for [`Field::OpCount`].
    #[must_use]
    pub fn number(&self, field: Field) -> Option<u64> {
        let text = self.get(field)?;
        let hex = text.strip_prefix("0x").or((field == Field::OpCount).then_some(text));
        hex.map_or_else(|| text.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
    }

    /// A field that is a number, if finite.
    #[must_use]
    pub fn real(&self, field: Field) -> Option<f64> {
        self.get(field)?.parse().ok().filter(|value: &f64| value.is_finite())
    }

    /// How long something took, in seconds: from seconds, milliseconds, or steps a second.
    #[must_use]
    pub fn seconds(&self) -> Option<f64> {
        let rate = || self.real(Field::Rate).filter(|rate| *rate > 0.0).map(f64::recip);
        self.real(Field::Seconds).or_else(|| self.real(Field::Millis).map(|ms| ms / 1000.0)).or_else(rate)
    }

    /// All fields.
    pub fn iter(&self) -> impl Iterator<Item = (Field, &str)> {
        self.0.iter().map(|(field, text)| (*field, text.as_ref()))
    }

    /// The same, owning its text.
    #[must_use]
    pub fn owned(&self) -> Fields<'static> {
        Fields(self.0.iter().map(|(field, text)| (*field, Cow::Owned(text.clone().into_owned()))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(of: &[(Field, &'static str)]) -> Fields<'static> {
        Fields(of.iter().map(|(field, text)| (*field, Cow::Borrowed(*text))).collect())
    }

    #[test]
    fn every_field_is_found_by_its_own_name() {
        for field in Field::ALL {
            assert_eq!(Field::of(field.name()), Some(*field));
        }
        assert_eq!(Field::of("pear"), None);
    }

    #[test]
    fn a_whole_number_is_decimal_or_hexadecimal_where_it_says_so_or_counts_operations() {
        for (field, text, number) in [
            (Field::Seq, "61", Some(61)),
            (Field::Seq, "0x61", Some(0x61)),
            (Field::Seq, "6f", None),
            (Field::Seq, "-1", None),
            (Field::OpCount, "61", Some(0x61)),
            (Field::OpCount, "0x6f", Some(0x6f)),
            (Field::OpCount, "many", None),
        ] {
            assert_eq!(fields(&[(field, text)]).number(field), number, "{text} of {field:?}");
        }
        assert_eq!(fields(&[(Field::Step, "61")]).number(Field::Seq), None);
    }

    #[test]
    fn a_duration_is_told_in_seconds_or_milliseconds_or_by_steps_a_second() {
        let of = |told: &[(Field, &'static str)]| fields(told).seconds();
        assert_eq!(of(&[(Field::Seconds, "1.5"), (Field::Millis, "7")]), Some(1.5));
        assert_eq!(of(&[(Field::Millis, "250"), (Field::Rate, "8")]), Some(0.25));
        assert_eq!(of(&[(Field::Rate, "8")]), Some(0.125));
        for never in ["0", "-8", "inf", "NaN"] {
            assert_eq!(of(&[(Field::Rate, never)]), None, "{never} steps a second");
        }
        assert_eq!(of(&[(Field::Seconds, "inf"), (Field::Millis, "250")]), Some(0.25));
        assert_eq!(of(&[(Field::Step, "3")]), None);
    }

    #[test]
    fn fields_are_told_in_their_order_and_stay_when_the_line_is_gone() {
        let line = "n1 7".to_owned();
        let (peer, pid) = line.split_once(' ').unwrap();
        let borrowed = Fields(vec![(Field::Peer, Cow::Borrowed(peer)), (Field::Pid, Cow::Borrowed(pid))]);
        let owned = borrowed.owned();
        assert_eq!(owned, borrowed);
        drop(line);
        assert_eq!(owned.iter().collect::<Vec<_>>(), [(Field::Peer, "n1"), (Field::Pid, "7")]);
        assert_eq!((owned.get(Field::Pid), owned.get(Field::Rank)), (Some("7"), None));
    }
}
