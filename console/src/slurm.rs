//! On which nodes does a Slurm job run?
//!
//! Asked of the programs that Slurm itself brings, on the machine of the console; each gets ten seconds.

use anyhow::{Result, anyhow};
use muster_fleet::hostlist::expand;
use muster_fleet::slurm::{Said, ask};
use muster_wire::clean;

/// Bytes of an answer that are read.
const MOST: u64 = 1 << 20;

/// The nodes of job `id`, in Slurm's order: of a job that runs, or that ended lately.
///
/// # Errors
/// When Slurm is not there, does not know the job, or has given it no nodes yet.
pub fn nodes_of(id: &str) -> Result<Vec<String>> {
    // scontrol comes last: names that users chose stand among what it prints.
    let asked: [(&str, &[&str]); 3] = [
        ("squeue", &["-h", "-j", id, "-o", "%T %N"]),
        ("sacct", &["-n", "-X", "-P", "-j", id, "-o", "State,NodeList"]),
        ("scontrol", &["-o", "show", "job", id]),
    ];
    answer(id, asked.into_iter().map(|(program, arguments)| (program, ask(program, arguments, MOST))))
}

/// The job in whose allocation this process runs.
#[must_use]
pub fn around() -> Option<String> {
    std::env::var("SLURM_JOB_ID").ok().filter(|id| is_id(id))
}

/// Id by which the processes of a job know it; none for a part of an array or of a job of several parts, whose processes know
/// another.
#[must_use]
pub fn known_to_processes(id: &str) -> Option<String> {
    (!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())).then(|| id.to_owned())
}

/// The id of a job, as `--job` takes it.
///
/// # Errors
/// When it is none.
pub fn id(text: &str) -> Result<String, String> {
    let wrong = || format!("'{}' is no Slurm job id: 4711, 4711_3 or 4711+1 is one", clean(text, 64));
    is_id(text).then(|| text.to_owned()).ok_or_else(wrong)
}

fn is_id(id: &str) -> bool {
    let digits = |part: &str| (1..=20).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    id.split_once(['_', '+']).map_or_else(|| digits(id), |(job, part)| digits(job) && digits(part))
}

/// What the programs' answers come to: the first that names nodes. The later ones are not asked then.
fn answer(id: &str, asked: impl IntoIterator<Item = (&'static str, Said)>) -> Result<Vec<String>> {
    let (mut states, mut words, mut present) = (Vec::new(), Vec::new(), false);
    for (name, said) in asked {
        present |= !matches!(said, Said::Absent);
        match said {
            Said::Absent => {}
            Said::Failed(why) => words.push(format!("{name}: {why}")),
            Said::Text(text) => {
                let found = if name == "scontrol" { records(&text) } else { columns(&text, name == "sacct") };
                let lists: Vec<&str> = found.iter().filter_map(|(_, list)| *list).collect();
                if !lists.is_empty() {
                    let strange = |list: &str| format!("job {id}: {name} names its nodes '{}'", clean(list, 200));
                    return expanded(&lists).map_err(|(list, why)| anyhow!("{}: {why}", strange(list)));
                }
                states.extend(found.first().map(|(state, _)| clean(state, 40)));
            }
        }
    }
    match (states.first(), words.first()) {
        (Some(state), _) => Err(anyhow!("job {id} has no nodes: Slurm says it is {state}")),
        (None, Some(why)) => Err(anyhow!("Slurm does not tell the nodes of job {id}: {why}")),
        (None, None) if present => Err(anyhow!("Slurm knows no job {id}")),
        (None, None) => Err(anyhow!(
            "--job needs Slurm's squeue, sacct or scontrol on this machine, and none is on the PATH; name the nodes with -w"
        )),
    }
}

/// Every node of all lists once, or the list that is none.
fn expanded<'a>(lists: &[&'a str]) -> Result<Vec<String>, (&'a str, String)> {
    let mut nodes: Vec<String> = Vec::new();
    for list in lists {
        for node in expand(list).map_err(|why| (*list, why.to_string()))? {
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
    }
    Ok(nodes)
}

/// State and nodes of each record that `scontrol -o show job` prints: `JobId=1 … JobState=RUNNING … NodeList=n[1-4] …`.
fn records(text: &str) -> Vec<(&str, Option<&str>)> {
    fn of(line: &str) -> Option<(&str, Option<&str>)> {
        let state = line.split(' ').find_map(|word| word.strip_prefix("JobState="))?;
        let list = line.split(' ').find_map(|word| word.strip_prefix("NodeList="));
        Some((state, list.filter(|list| is_list(list))))
    }
    text.lines().filter_map(of).collect()
}

/// The same of lines with a state and nodes.
fn columns(text: &str, bars: bool) -> Vec<(&str, Option<&str>)> {
    let mark = if bars { '|' } else { ' ' };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let parts =
        lines.map(|line| line.split_once(mark).map_or((line, None), |(state, list)| (state, Some(list.trim()))));
    parts.map(|(state, list)| (state, list.filter(|list| is_list(list)))).collect()
}

fn is_list(list: &str) -> bool {
    !list.is_empty() && list != "(null)" && list != "None assigned"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(of: &str) -> Said {
        Said::Text(of.to_owned())
    }

    #[test]
    fn nodes_of_a_job_come_from_the_first_program_that_names_any() {
        let record = "JobId=4711 JobName=a b JobState=RUNNING ReqNodeList=x9 ExcNodeList=(null) NodeList=n[001-003] BatchHost=n001 NumNodes=3\n";
        let nodes = |asked: Vec<(&'static str, Said)>| answer("4711", asked).map_err(|why| why.to_string());
        assert_eq!(nodes(vec![("scontrol", text(record))]), Ok(vec!["n001".into(), "n002".into(), "n003".into()]));
        let two = format!("{record}{}", record.replace("n[001-003]", "n[003-004],m1"));
        assert_eq!(nodes(vec![("scontrol", text(&two))]).unwrap().len(), 5, "parts of a job together");
        let failed = || Said::Failed("slurm_load_jobs error: Invalid job id specified".into());
        assert_eq!(nodes(vec![("scontrol", failed()), ("squeue", text("RUNNING n7\n"))]), Ok(vec!["n7".into()]));
        let ended = vec![("scontrol", failed()), ("squeue", text("")), ("sacct", text("COMPLETED|n[1-2]\n"))];
        assert_eq!(nodes(ended), Ok(vec!["n1".into(), "n2".into()]));
    }

    #[test]
    fn why_there_are_no_nodes_is_said() {
        let why = |asked: Vec<(&'static str, Said)>| answer("4711", asked).unwrap_err().to_string();
        assert!(why(vec![("scontrol", Said::Absent), ("sacct", Said::Absent)]).contains("none is on the PATH"));
        let pending = "JobId=4711 JobState=PENDING Reason=Priority NodeList=(null)\n";
        assert_eq!(why(vec![("scontrol", text(pending))]), "job 4711 has no nodes: Slurm says it is PENDING");
        assert_eq!(why(vec![("squeue", text("PENDING \n"))]), "job 4711 has no nodes: Slurm says it is PENDING");
        let unknown =
            why(vec![("squeue", Said::Failed("slurm_load_jobs error: Invalid job id".into())), ("sacct", text(""))]);
        assert!(unknown.ends_with("squeue: slurm_load_jobs error: Invalid job id"), "{unknown}");
        assert_eq!(why(vec![("sacct", text("\n"))]), "Slurm knows no job 4711");
        assert!(why(vec![("squeue", text("RUNNING n[1-"))]).contains("squeue names its nodes 'n[1-'"));
    }

    #[test]
    fn what_is_no_id_is_asked_of_nobody() {
        for id in ["4711", "4711_3", "4711+1"] {
            assert_eq!(super::id(id).as_deref(), Ok(id));
        }
        for id in ["", "-1", "47 11", "4711_", "all", "4711;reboot", "123456789012345678901"] {
            assert!(super::id(id).is_err(), "{id}");
        }
        assert_eq!((known_to_processes("4711"), known_to_processes("4711_3")), (Some("4711".to_owned()), None));
    }
}
