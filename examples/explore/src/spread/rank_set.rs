//! Location of the ranks: their devices, processes and connections.

use super::launch::{Environment, Process, Wanted, process};
use crate::first_table::{self, Listed, Size};
use crate::jobs::Job;
use crate::options::{Options, TableOptions};
use anyhow::{Context, Result, ensure};
use std::time::Duration;
use warpset::cluster::{Builder, Local, Transport};
use warpset::{Device, Storage, TableBuilder, Words};
use warpset_model::ir::Layout;
use warpset_search::ranks::Table;
use warpset_support::device::DeviceChoice;
use warpset_support::in_process::{OfAnother, devices_of, first_error, on_all};

/// Ranks of one process notice at once when one fails. They wait long for a slow one, in case the process was suspended.
const PATIENCE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Ranks that are processes may disappear silently. This is the longest time that one works while others wait: it compiles its
/// kernel, or searches a level for a path.
#[cfg(feature = "nccl")]
const PATIENCE_OF_PROCESSES: Duration = Duration::from_secs(600);

/// The ranks of a search, by the command line and the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RankPlan {
    /// One table, without ranks.
    Alone,
    /// This number of ranks in this process, or one per device.
    Here { ranks: Option<usize> },
    /// One of several processes.
    Process(Process),
}

impl RankPlan {
    /// # Errors
    ///
    /// The options contradict each other, or this build lacks a requested feature.
    pub fn of(Options { ranks, table, input, job, .. }: &Options, environment: Environment<'_>) -> Result<Self> {
        let wanted = Wanted { rank: ranks.rank, ranks: ranks.ranks, rendezvous: ranks.rendezvous.clone() };
        // A build that cannot connect processes ignores a launcher's environment, because a job's script may have one, too.
        let Some(process) = process(&wanted, environment, cfg!(feature = "nccl"))? else {
            return Ok(match ranks.local_ranks {
                None if !table.device.may_be_several() => Self::Alone,
                local => Self::Here { ranks: local.map(usize::from) },
            });
        };
        ensure!(
            cfg!(feature = "nccl"),
            "this build cannot connect processes: rank {} of {} needs the feature `nccl`",
            process.rank,
            process.ranks
        );
        let is_cpu = matches!(table.device, DeviceChoice::Cpu { .. });
        ensure!(!is_cpu, "several processes need GPUs, because NCCL connects them: --device cpu is not possible");
        ensure!(
            ranks.local_ranks.is_none(),
            "--local-ranks is for one process, but this is rank {} of {}",
            process.rank,
            process.ranks
        );
        ensure!(
            input.model.as_os_str() != "-",
            "the model cannot come from standard input with several processes: each process reads it"
        );
        let writes = matches!(job, Job::Emit(_) | Job::EmitBuchi(_));
        ensure!(!writes, "--emit and --emit-buchi are for one process: --ranks 1");
        Ok(Self::Process(process))
    }

    /// Whether this process prints and writes files.
    pub fn prints(&self) -> bool {
        !matches!(self, Self::Process(process) if process.rank != 0)
    }
}

/// A rank of this process, before it has a table.
struct UnbuiltRank {
    device: Device,
    connection: Connection,
    /// Ranks that share the device.
    sharing: u64,
}

enum Connection {
    Local(Local),
    #[cfg(feature = "nccl")]
    Nccl(Box<warpset::cluster::Nccl>),
}

impl Connection {
    fn transport(&mut self) -> &mut dyn Transport {
        match self {
            Self::Local(local) => local,
            #[cfg(feature = "nccl")]
            Self::Nccl(nccl) => &mut **nccl,
        }
    }
}

/// The ranks of this process, connected with each other and with those of other processes.
pub struct RankSet {
    members: Vec<UnbuiltRank>,
    ranks: u64,
}

impl RankSet {
    /// Connects the ranks, and returns the device of the first one. Without ranks: one device, and no request for ranks.
    pub fn open(plan: &RankPlan, choice: &DeviceChoice) -> Result<(Device, Option<Self>)> {
        match plan {
            RankPlan::Alone => Ok((choice.open()?, None)),
            RankPlan::Here { ranks } => {
                let devices = choice.open_all()?;
                let first = devices[0].clone();
                if ranks.is_none() && devices.len() == 1 {
                    return Ok((first, None));
                }
                Ok((first, Some(Self::here(&devices, ranks.unwrap_or(devices.len()))?)))
            }
            RankPlan::Process(process) => Self::process(process, choice),
        }
    }

    /// Creates `ranks` ranks in this process, equally many on each of these devices.
    pub fn here(devices: &[Device], ranks: usize) -> Result<Self> {
        let of_ranks = devices_of(devices, ranks)?;
        let sharing = (ranks / devices.len()) as u64;
        let rank = |(device, local)| UnbuiltRank { device, connection: Connection::Local(local), sharing };
        let members = of_ranks.into_iter().zip(Local::with_timeout(ranks, PATIENCE)).map(rank).collect();
        Ok(Self { members, ranks: ranks as u64 })
    }

    #[cfg(feature = "nccl")]
    fn process(process: &Process, choice: &DeviceChoice) -> Result<(Device, Option<Self>)> {
        use warpset::cluster::{Nccl, Rendezvous};
        let gpu = super::launch::gpu_of(process, &choice.named_gpus(), Device::gpus()?.len())?;
        let device = Device::gpu(gpu)?;
        let meet: Rendezvous = process.rendezvous.parse()?;
        let meet = process.token.iter().fold(meet, |meet, token| meet.token(token));
        let nccl = Nccl::connect(&device, process.rank, process.ranks, &meet, PATIENCE_OF_PROCESSES)
            .with_context(|| format!("rank {} of {}, on GPU {gpu}", process.rank, process.ranks))?;
        let rank = UnbuiltRank { device: device.clone(), connection: Connection::Nccl(Box::new(nccl)), sharing: 1 };
        Ok((device, Some(Self { members: vec![rank], ranks: process.ranks as u64 })))
    }

    #[cfg(not(feature = "nccl"))]
    fn process(process: &Process, _: &DeviceChoice) -> Result<(Device, Option<Self>)> {
        anyhow::bail!("this build cannot connect processes: rank {} of {} needs the feature `nccl`", process.rank, process.ranks)
    }

    /// The size of each rank's table: given by the options for all ranks together, or the smallest of the best sizes for their
    /// devices.
    pub fn size(&mut self, options: &TableOptions, layout: &Layout) -> Result<Size> {
        let ranks = self.ranks;
        let sizes = on_all(&mut self.members, |rank| {
            let size = |sharing| {
                first_table::size(options, options.kind_for(layout.words), layout, &rank.device, sharing, Listed::Levels)
            };
            // All ranks together get the slots that one table would have, if they have memory for them.
            let parts = if options.capacity.is_some() { ranks } else { rank.sharing };
            let own = size(1).and_then(|all| {
                let fitting = size(rank.sharing)?;
                Ok(Size { slots: all.slots.div_ceil(parts).min(fitting.slots), ..fitting })
            });
            // Only states of the same rank share parts, so each rank needs nodes for nearly all parts. A rank that has failed
            // sends 0.
            let of_rank = own.as_ref().map_or([0, 0], |size| [size.slots.saturating_add(1), size.nodes]);
            let bytes: Vec<u8> = of_rank.iter().flat_map(|number| number.to_le_bytes()).collect();
            let mut all = vec![0; bytes.len() * ranks as usize];
            rank.connection.transport().all_gather(&bytes, &mut all)?;
            own?;
            let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
            let least = |at: usize| all.chunks_exact(16).map(|of| number(&of[at..at + 8])).min().unwrap_or(0);
            ensure!(least(0) > 0, OfAnother);
            Ok(Size { slots: least(0) - 1, nodes: least(8) })
        });
        Ok(first_error(sizes)?[0])
    }

    /// Builds the tables of the ranks of this process, each with `slots` slots.
    pub fn build<S: Storage>(self, builder: &TableBuilder<Words, S>, slots: u64) -> Result<Vec<Table<S>>> {
        let built = on_all(self.members, |UnbuiltRank { device, connection, .. }| {
            let builder = Builder::new(builder.clone().capacity(slots));
            let built = match connection {
                Connection::Local(local) => builder.build(&device, local),
                #[cfg(feature = "nccl")]
                Connection::Nccl(nccl) => builder.build(&device, *nccl),
            };
            built.context("the tables of the ranks cannot be created")
        });
        first_error(built)
    }
}
