//! Rank of this process, if it is one of several, by its launcher's environment and the command line.
//!
//! These functions depend only on both inputs, so that contradictions are errors before anything is opened or allocated.

use anyhow::{Context, Result, bail, ensure};

/// A variable of the environment.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Environment variable with a secret that only the ranks of a run know.
pub const TOKEN: &str = "WARPSET_RENDEZVOUS_TOKEN";

/// Options about ranks that are processes.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub rank: Option<usize>,
    pub ranks: Option<usize>,
    pub rendezvous: Option<String>,
}

/// One process of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub rank: usize,
    pub ranks: usize,
    /// Number of the process on its host, if the launcher sets it.
    pub local_rank: Option<usize>,
    /// Meeting place of the processes, and their secret.
    pub rendezvous: String,
    pub token: Option<String>,
}

/// A launcher's variables: rank of the process, number of ranks, and rank on its host.
struct Launcher {
    name: &'static str,
    rank: &'static str,
    ranks: &'static str,
    local_rank: &'static str,
}

/// Innermost launchers first: mpirun and torchrun run in a Slurm job and leave its variables set.
const LAUNCHERS: [Launcher; 4] = [
    Launcher {
        name: "mpirun",
        rank: "OMPI_COMM_WORLD_RANK",
        ranks: "OMPI_COMM_WORLD_SIZE",
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
    },
    Launcher { name: "mpiexec", rank: "PMI_RANK", ranks: "PMI_SIZE", local_rank: "MPI_LOCALRANKID" },
    Launcher { name: "torchrun", rank: "RANK", ranks: "WORLD_SIZE", local_rank: "LOCAL_RANK" },
    Launcher { name: "srun", rank: "SLURM_PROCID", ranks: "SLURM_NTASKS", local_rank: "SLURM_LOCALID" },
];

/// Values set by a launcher.
struct Launched {
    by: &'static Launcher,
    rank: usize,
    ranks: usize,
    local_rank: Option<usize>,
}

/// Combines the command line and the launcher; `None` if this process is the only one. Launchers count only if
/// `follows_launchers`.
///
/// # Errors
///
/// The inputs contradict each other or themselves, or a value is missing.
pub fn process(wanted: &Wanted, environment: Environment<'_>, follows_launchers: bool) -> Result<Option<Process>> {
    if wanted.ranks == Some(1) {
        ensure!(
            wanted.rank.is_none_or(|rank| rank == 0),
            "--rank {} does not exist with --ranks 1: the only rank is 0",
            wanted.rank.unwrap_or(0)
        );
        ensure!(wanted.rendezvous.is_none(), "--rendezvous needs several ranks, but --ranks is 1");
        return Ok(None);
    }
    let launched = if follows_launchers { launched(environment)? } else { None };
    for (option, own, name, other) in launched.iter().flat_map(|launched| {
        [("--rank", wanted.rank, launched.by.rank, launched.rank), ("--ranks", wanted.ranks, launched.by.ranks, launched.ranks)]
    }) {
        let own = own.unwrap_or(other);
        ensure!(own == other, "{option} is {own}, but {name} is {other}");
    }
    let ranks = wanted.ranks.or(launched.as_ref().map(|launched| launched.ranks));
    let rank = wanted.rank.or(launched.as_ref().map(|launched| launched.rank));
    let (rank, ranks) = match (rank, ranks) {
        (None, None) => {
            ensure!(wanted.rendezvous.is_none(), "--rendezvous needs several ranks: add --rank and --ranks");
            return Ok(None);
        }
        (Some(rank), None) => bail!("--rank {rank} needs the number of ranks: add --ranks"),
        (None, Some(ranks)) => {
            bail!("--ranks {ranks} needs the number of this rank: add --rank, numbered from 0, or use a launcher")
        }
        (Some(rank), Some(ranks)) => (rank, ranks),
    };
    ensure!(ranks > 0, "--ranks must be at least 1");
    ensure!(rank < ranks, "rank {rank} does not exist: the last of {ranks} ranks is {}", ranks - 1);
    let rendezvous = match wanted.rendezvous.clone().or_else(|| address(launched.as_ref(), environment)) {
        Some(rendezvous) => rendezvous,
        None => {
            let by = launched.map_or(String::new(), |launched| format!(" ({} sets none)", launched.by.name));
            bail!(
                "rank {rank} of {ranks} has no meeting place{by}: add --rendezvous file:PATH or tcp:HOST:PORT (with --ranks 1 \
                 this process searches alone)"
            )
        }
    };
    let token = environment(TOKEN).filter(|token| !token.is_empty());
    let (kind, place) = rendezvous.split_once(':').unwrap_or((&rendezvous, ""));
    match kind {
        "file" => ensure!(!place.is_empty(), "--rendezvous file:PATH has no path"),
        "tcp" => {
            let port = place.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
            let is_port = port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port != 0));
            ensure!(is_port, "`{rendezvous}` is not an address: --rendezvous needs file:PATH or tcp:HOST:PORT");
            ensure!(
                token.is_some(),
                "ranks that meet over TCP need a token: set {TOKEN} in the environment to the same secret for all ranks"
            );
        }
        _ => bail!("`{rendezvous}` is not a meeting place: --rendezvous needs file:PATH or tcp:HOST:PORT"),
    }
    let local_rank = launched.and_then(|launched| launched.local_rank);
    Ok(Some(Process { rank, ranks, local_rank, rendezvous, token }))
}

/// Values of the first launcher whose variables are set; `None` if it has started only one process.
fn launched(environment: Environment<'_>) -> Result<Option<Launched>> {
    for by in &LAUNCHERS {
        let number = |name: &str| -> Result<Option<usize>> {
            let Some(text) = environment(name) else { return Ok(None) };
            let number = text
                .trim()
                .parse()
                .with_context(|| format!("the environment variable {name} is `{text}`, which is not a number"))?;
            Ok(Some(number))
        };
        if let (Some(rank), Some(ranks)) = (number(by.rank)?, number(by.ranks)?) {
            let launched = Launched { by, rank, ranks, local_rank: number(by.local_rank)? };
            return Ok(Some(launched).filter(|launched| launched.ranks > 1));
        }
    }
    Ok(None)
}

/// Meeting place of torchrun's processes. If torchrun's own agent listens there, the next port is used.
fn address(launched: Option<&Launched>, environment: Environment<'_>) -> Option<String> {
    launched.filter(|launched| launched.by.name == "torchrun")?;
    let (host, port) = (environment("MASTER_ADDR")?, environment("MASTER_PORT")?.trim().parse::<u16>().ok()?);
    let is_taken = environment("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    Some(format!("tcp:{host}:{}", if is_taken { port.checked_add(1)? } else { port }))
}

/// Number of the GPU that a process uses, out of `visible` GPUs: the one with its number on its host, unless only one is visible.
///
/// `listed`: GPUs that the command line names; empty if it names none.
#[cfg_attr(not(feature = "nccl"), allow(dead_code, reason = "only NCCL connects processes"))]
pub fn gpu_of(process: &Process, listed: &[usize], visible: usize) -> Result<usize> {
    let local = process.local_rank.unwrap_or(if listed.is_empty() { process.rank % visible.max(1) } else { process.rank });
    match (listed, visible) {
        ([], 0) => bail!("rank {} of {} has no GPU", process.rank, process.ranks),
        ([], 1) => Ok(0),
        ([], visible) if local < visible => Ok(local),
        ([], visible) => bail!(
            "rank {} is number {local} on its host (from 0), which has {visible} GPUs: start at most one rank per GPU",
            process.rank
        ),
        ([one], _) => Ok(*one),
        (several, _) => several.get(local).copied().with_context(|| {
            format!("rank {} is number {local} on its host (from 0), but --device names {} GPUs", process.rank, several.len())
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(wanted: &[(&str, &str)], environment: &[(&str, &str)]) -> Result<Option<Process>, String> {
        let of = |list: &[(&str, &str)], name: &str| list.iter().find(|(of, _)| *of == name).map(|(_, value)| value.to_string());
        let number = |name| of(wanted, name).map(|value| value.parse().unwrap());
        let wanted = Wanted { rank: number("rank"), ranks: number("ranks"), rendezvous: of(wanted, "rendezvous") };
        process(&wanted, &|name| of(environment, name), true).map_err(|error| format!("{error:#}"))
    }

    const MEET: (&str, &str) = ("rendezvous", "file:/tmp/meet");

    #[test]
    fn launchers_say_which_rank_a_process_is() {
        for (rank, ranks, local) in [
            ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
            ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
            ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
            ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
        ] {
            let found = ask(&[MEET], &[(rank, "5"), (ranks, "8"), (local, "1")]).unwrap().unwrap();
            assert_eq!((found.rank, found.ranks, found.local_rank, &*found.rendezvous), (5, 8, Some(1), "file:/tmp/meet"));
            assert_eq!(ask(&[MEET], &[(rank, "5"), (ranks, "8")]).unwrap().unwrap().local_rank, None);
            // The values are given twice and agree; only half of them is given; there is one process.
            assert_eq!(ask(&[MEET, ("rank", "5"), ("ranks", "8")], &[(rank, "5"), (ranks, "8")]).unwrap().unwrap().rank, 5);
            assert_eq!(ask(&[], &[(rank, "5")]), Ok(None));
            assert_eq!(ask(&[], &[(rank, "0"), (ranks, "1")]), Ok(None));
            assert_eq!(ask(&[("ranks", "1")], &[(rank, "5"), (ranks, "8")]), Ok(None));
        }
        let nested = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4"), ("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")];
        let found = ask(&[MEET], &nested).unwrap().unwrap();
        assert_eq!((found.rank, found.ranks), (1, 2));
    }

    #[test]
    fn ranks_are_given_by_hand_and_meet_where_torchrun_says() {
        let by_hand = ask(&[MEET, ("rank", "1"), ("ranks", "3")], &[]).unwrap().unwrap();
        assert_eq!((by_hand.rank, by_hand.ranks, by_hand.local_rank), (1, 3, None));
        assert_eq!(ask(&[], &[]), Ok(None));
        let torchrun = [("RANK", "0"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "n7"), ("MASTER_PORT", "29400"), (TOKEN, "x")];
        assert_eq!(ask(&[], &torchrun).unwrap().unwrap().rendezvous, "tcp:n7:29400");
        let with_agent = [&torchrun[..], &[("TORCHELASTIC_USE_AGENT_STORE", "True")]].concat();
        assert_eq!(ask(&[], &with_agent).unwrap().unwrap().rendezvous, "tcp:n7:29401");
        assert_eq!(ask(&[MEET], &torchrun).unwrap().unwrap().rendezvous, "file:/tmp/meet");
        // Launchers are ignored in a build that connects no processes.
        let none =
            process(&Wanted::default(), &|name| (name.ends_with("RANK") || name.ends_with("SIZE")).then(|| "7".into()), false);
        assert_eq!(none.unwrap(), None);
    }

    #[test]
    fn contradictions_are_errors_with_their_numbers() {
        let mpirun = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")];
        let torchrun = [("RANK", "0"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "n7"), ("MASTER_PORT", "29400")];
        for (wanted, environment, part) in [
            (&[("rank", "2"), ("ranks", "2"), MEET][..], &[][..], "rank 2 does not exist: the last of 2 ranks is 1"),
            (&[("rank", "0"), MEET], &mpirun, "--rank is 0, but OMPI_COMM_WORLD_RANK is 1"),
            (&[("ranks", "3"), MEET], &mpirun, "--ranks is 3, but OMPI_COMM_WORLD_SIZE is 2"),
            (&[], &mpirun, "mpirun sets none"),
            (&[("rank", "0"), ("ranks", "2")], &[], "has no meeting place"),
            (&[("rank", "1")], &[], "--rank 1 needs the number of ranks"),
            (&[("ranks", "4")], &[], "--ranks 4 needs the number of this rank"),
            (&[("ranks", "1"), ("rank", "1")], &[], "the only rank is 0"),
            (&[("ranks", "1"), MEET], &[], "--ranks is 1"),
            (&[("ranks", "0"), ("rank", "0"), MEET], &[], "at least 1"),
            (&[MEET], &[], "--rendezvous needs several ranks"),
            (&[MEET], &[("RANK", "x"), ("WORLD_SIZE", "2")], "RANK is `x`"),
            (&[MEET], &[("RANK", "7"), ("WORLD_SIZE", "2")], "rank 7 does not exist"),
            (&[], &torchrun, TOKEN),
            (&[("rank", "0"), ("ranks", "2"), ("rendezvous", "tcp:n7")], &[(TOKEN, "x")], "`tcp:n7` is not an address"),
            (&[("rank", "0"), ("ranks", "2"), ("rendezvous", "tcp:n7:0")], &[(TOKEN, "x")], "is not an address"),
            (&[("rank", "0"), ("ranks", "2"), ("rendezvous", "tcp:n7:1")], &[(TOKEN, "")], TOKEN),
            (&[("rank", "0"), ("ranks", "2"), ("rendezvous", "file:")], &[], "has no path"),
            (&[("rank", "0"), ("ranks", "2"), ("rendezvous", "nfs:x")], &[], "not a meeting place"),
        ] {
            let error = ask(wanted, environment).unwrap_err();
            assert!(error.contains(part), "{wanted:?}, {environment:?}: {error}");
        }
    }

    #[test]
    fn a_process_takes_the_gpu_of_its_number_on_its_host() {
        let process = |rank, local_rank| Process { rank, ranks: 8, local_rank, rendezvous: "file:x".into(), token: None };
        assert_eq!(gpu_of(&process(5, Some(1)), &[], 4).unwrap(), 1);
        assert_eq!(gpu_of(&process(5, Some(1)), &[], 1).unwrap(), 0);
        assert_eq!(gpu_of(&process(5, None), &[], 4).unwrap(), 1);
        assert_eq!(gpu_of(&process(5, Some(1)), &[2, 7], 8).unwrap(), 7);
        assert_eq!(gpu_of(&process(5, Some(1)), &[3], 8).unwrap(), 3);
        for (local, listed, visible, part) in
            [(Some(4), &[][..], 4, "has 4 GPUs"), (Some(0), &[], 0, "no GPU"), (Some(2), &[0, 1], 4, "names 2 GPUs")]
        {
            let error = gpu_of(&process(5, local), listed, visible).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
