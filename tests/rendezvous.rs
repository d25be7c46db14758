//! Ranks in separate processes meet: by a file and over TCP, in time and late, with the right token and with wrong ones, and
//! while other processes connect to the port or put other files at the path.
//!
//! This program also runs as the ranks and the other processes: `WARPSET_TEST_ROLE` selects the role, and no test runs then.
//!
//! Keeps these promises of `src/docs/several_gpus.md`:
//!
//! - Processes meet by a file or over TCP, in time or late. Missing ranks are named; wrong tokens and other numbers of ranks are
//!   errors.
//! - Only their owner can read the files of a rendezvous. Files of other users and of runs that have ended are not used, and a
//!   FIFO is not waited for.
//! - Over TCP strangers without the token get nothing; a token of another length is refused unread; a token or a number of ranks
//!   beyond the limits is an error.
//! - Strangers delay no rank and take neither threads nor memory: every conversation ends, rank 0 returns when all have come or
//!   at its time-out, and no program listens afterwards.
//! - A rank that connects keeps its time-out if packets are dropped, and if another program listens.

use libtest_mimic::Arguments;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use warpset::Error;
use warpset::cluster::Rendezvous;
use warpset_testing::trials::trial;

const SECRET: &[u8] = b"what rank 0 gives to all, and to nobody else";
const TOKEN: &str = "of this run";
/// Time after which an expected event counts as missing, and the program as hanging.
const HANGS: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);

/// Number of tests that run at a time. They sleep most of the time, because they wait for time-outs.
const AT_A_TIME: usize = 32;

const TESTS: &[(&str, fn())] = &[
    ("all_get_what_rank_0_gives", all_get_what_rank_0_gives),
    ("ranks_may_come_late", ranks_may_come_late),
    ("missing_ranks_are_named", missing_ranks_are_named),
    ("wrong_tokens_get_nothing", wrong_tokens_get_nothing),
    ("limits", limits),
    ("another_number_of_ranks_is_an_error", another_number_of_ranks_is_an_error),
];

fn main() -> ExitCode {
    if let Ok(role) = std::env::var("WARPSET_TEST_ROLE") {
        play(&role);
        return ExitCode::SUCCESS;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_A_TIME);
    #[cfg(target_os = "linux")]
    let of_files = files::TESTS;
    #[cfg(not(target_os = "linux"))]
    let of_files: &[(&str, fn())] = &[];
    let tests = TESTS.iter().chain(attack::TESTS).chain(of_files);
    let trials = tests.map(|(name, test)| trial(name.to_string(), Box::new(test))).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Waits until `look` finds something.
fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < HANGS, "after {HANGS:?} there is not: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// A process of this program, killed when it is dropped.
struct Process(Child);

impl Process {
    fn start(role: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env("WARPSET_TEST_ROLE", role);
        command.envs(variables.iter().map(|(name, value)| (format!("WARPSET_TEST_{name}"), value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Self(command.spawn().expect("a process of this program"))
    }

    fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Waits for a line with "it says: ", and returns what follows. The process may go on.
    fn line(&mut self) -> String {
        // A thread reads, so that a process that hangs is noticed. The process ends with `self`, and then the thread does.
        let stdout = self.0.stdout.take().expect("read once");
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            lines.filter_map(|line| line.split_once("it says: ").map(|(_, said)| said.to_owned())).for_each(|said| {
                let _ = sender.send(said);
            });
        });
        receiver.recv_timeout(HANGS).unwrap_or_else(|error| panic!("it says nothing: {error}"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A rank to be started.
#[derive(Clone, Copy)]
struct Rank<'a> {
    place: &'a str,
    rank: usize,
    ranks: usize,
    token: &'a str,
    timeout: Duration,
}

fn rank<'a>(place: &'a str, rank: usize, ranks: usize) -> Rank<'a> {
    Rank { place, rank, ranks, token: TOKEN, timeout: HANGS }
}

impl<'a> Rank<'a> {
    fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    fn with(self, token: &'a str) -> Self {
        Self { token, ..self }
    }

    fn start(self) -> Process {
        let numbers = [self.rank.to_string(), self.ranks.to_string(), self.timeout.as_secs_f64().to_string()];
        let [rank, ranks, timeout] = numbers.each_ref().map(String::as_str);
        let of = [("RANK", rank), ("RANKS", ranks), ("TIMEOUT", timeout), ("PLACE", self.place), ("TOKEN", self.token)];
        Process::start("rank", &of)
    }
}

fn says(mut process: Process) -> String {
    process.line()
}

fn run<'a>(ranks: impl IntoIterator<Item = Rank<'a>>) -> Vec<String> {
    let processes: Vec<Process> = ranks.into_iter().map(Rank::start).collect();
    processes.into_iter().map(says).collect()
}

/// Repeats a meeting that fails at the time-out of a rank, with longer and longer time-outs, until all other ranks were fast
/// enough. `expected`: whether they were; it panics if time cannot be the reason.
fn eventually(mut meeting: impl FnMut(Duration) -> Vec<String>, expected: impl Fn(&[String]) -> bool) {
    for timeout in [1, 4, 16] {
        let said = meeting(Duration::from_secs(timeout));
        if expected(&said) {
            return;
        }
        assert!(timeout < 16, "{said:?}");
    }
}

/// Runs a rank or another process, as the role and other variables say, and prints its result.
fn play(role: &str) {
    let of = |name: &str| std::env::var(format!("WARPSET_TEST_{name}")).unwrap();
    match role {
        "rank" => {
            let meet: Rendezvous = of("PLACE").parse().unwrap();
            let meet = meet.token(of("TOKEN")).timeout(Duration::from_secs_f64(of("TIMEOUT").parse().unwrap()));
            let rank: usize = of("RANK").parse().unwrap();
            match meet.share(rank, of("RANKS").parse().unwrap(), if rank == 0 { SECRET } else { b"" }) {
                Ok(given) if given == SECRET => println!("it says: OK"),
                Ok(given) => println!("it says: given {given:?}"),
                Err(error) => println!("it says: {error}"),
            }
        }
        // Meets again and again at one place.
        "repeated" => {
            let meet: Rendezvous = of("PLACE").parse().unwrap();
            let (rank, ranks) = (of("RANK").parse().unwrap(), of("RANKS").parse().unwrap());
            let meet = meet.token(TOKEN).timeout(HANGS);
            let round = |round: usize| meet.share(rank, ranks, &round.to_le_bytes()).map(|given| given == round.to_le_bytes());
            println!("it says: {:?}", (0..20).map(round).collect::<Result<Vec<_>, _>>().map(|all| all.iter().all(|same| *same)));
        }
        "silent" => attack::silent(&of("PLACE")),
        role => panic!("{role}"),
    }
}

/// A folder of its own, removed at the end; and the places in it and on this host.
struct Places(PathBuf);

impl Places {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("warpset-rendezvous-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> String {
        format!("file:{}", self.path().display())
    }

    fn path(&self) -> PathBuf {
        self.0.join("meet")
    }

    /// A port that no program uses now and that no other test was given.
    fn tcp() -> String {
        static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
        loop {
            let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            if GIVEN.lock().unwrap().insert(free.port()) {
                return format!("tcp:{free}");
            }
        }
    }

    fn both(&self) -> [String; 2] {
        [self.file(), Self::tcp()]
    }

    fn left(&self) -> Vec<String> {
        std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn all_get_what_rank_0_gives() {
    let places = Places::new("all");
    for place in &places.both() {
        assert_eq!(run((0..4).map(|number| rank(place, number, 4))), ["OK"; 4], "{place}");
        assert!(places.left().is_empty(), "{:?}", places.left());
    }
    assert_eq!(Rendezvous::file("/nowhere/at/all").share(0, 1, SECRET).unwrap(), SECRET, "one rank needs no place");
}

fn ranks_may_come_late() {
    let places = Places::new("late");
    for place in &places.both() {
        for late in [0, 2] {
            let mut processes: Vec<Process> =
                (0..3).filter(|number| *number != late).map(|number| rank(place, number, 3).start()).collect();
            std::thread::sleep(Duration::from_millis(300));
            // Over TCP, rank 1 has ended if rank 0 has come.
            assert!(!processes[0].has_ended(), "{place}: rank {} waits for rank {late}", usize::from(late == 0));
            processes.push(rank(place, late, 3).start());
            assert!(processes.into_iter().map(says).all(|said| said == "OK"), "{place}, rank {late} is late");
        }
    }
}

fn missing_ranks_are_named() {
    let places = Places::new("missing");
    for place in &places.both() {
        let meeting = |timeout| run([0, 2].map(|number| rank(place, number, 4).within(timeout)));
        eventually(meeting, |said| {
            assert!(place.starts_with("tcp") || said[1] != "OK", "not all have come: {said:?}");
            assert!(said[0].contains("missing are {1") && places.left().is_empty(), "{said:?}, {:?}", places.left());
            // Over TCP it has what it wants as soon as it has come.
            let ended = said[1] == "OK" || said[1].contains("rank 0 has given up") || said[1].contains("rank 0 has not heard");
            said[0].contains("missing are {1, 3}") && ended
        });
        let said = run([rank(place, 1, 2).within(Duration::from_millis(500))]);
        assert!(said[0].contains("rank 0 has not come"), "{place}: {said:?}");
    }
}

fn wrong_tokens_get_nothing() {
    let places = Places::new("token");
    for place in &places.both() {
        let meeting = |timeout| {
            // Guesses of another length, and of the same one.
            let wrong = ["guessed", "of that run", "of this rum"].map(|guess| rank(place, 2, 3).with(guess));
            let right = [0, 1].map(|number| rank(place, number, 3));
            run(right.into_iter().chain(wrong).map(|rank| rank.within(timeout)))
        };
        eventually(meeting, |said| {
            assert!(said[2..].iter().all(|said| said != "OK"), "{place}: {said:?}");
            said[0].contains("missing are {2}") && said[2..].iter().all(|said| said.contains("token"))
        });
        // One that guesses wrong does not keep the right ones from meeting.
        let guesser = rank(place, 1, 3).with("guessed").within(Duration::from_secs(1));
        let said = run([guesser].into_iter().chain((0..3).map(|number| rank(place, number, 3))));
        assert!(said[0] != "OK" && said[1..] == ["OK", "OK", "OK"], "{place}: {said:?}");
    }
    let error = Rendezvous::tcp("127.0.0.1:1").share(0, 2, SECRET).unwrap_err();
    assert!(matches!(&error, Error::Connection { rank: 0, reason } if reason.contains("token")), "{error}");
}

/// Tokens and rank numbers come from the environment: those beyond the limits are errors.
fn limits() {
    let places = Places::new("limits");
    for place in &places.both() {
        let longest = "x".repeat(1 << 16);
        assert_eq!(run([0, 1].map(|number| rank(place, number, 2).with(&longest))), ["OK", "OK"], "{place}");
        let meet: Rendezvous = place.parse().unwrap();
        let longer = meet.clone().token(longest + "x").timeout(HANGS);
        for number in [0, 1] {
            let error = longer.share(number, 2, b"").unwrap_err().to_string();
            assert!(error.contains("a token of 65537 bytes"), "{error}");
            let error = meet.clone().token(TOKEN).share(number, usize::MAX, b"").unwrap_err().to_string();
            assert!(error.contains("more than 65536"), "{error}");
        }
        assert!(places.left().is_empty());
    }
}

fn another_number_of_ranks_is_an_error() {
    let places = Places::new("number");
    for place in &places.both() {
        let meeting = |timeout| run([rank(place, 0, 2).within(timeout), rank(place, 1, 5).within(timeout)]);
        eventually(meeting, |said| {
            assert!(said[1] != "OK" && said[0].contains("missing are {1}"), "{place}: {said:?}");
            said[1].contains("one of 5 ranks") && said[1].contains("waits for 2")
        });
    }
}

/// Strangers who reach the port.
mod attack {
    use super::*;

    pub const TESTS: &[(&str, fn())] = &[
        ("attack::strangers_are_ignored", strangers_are_ignored),
        ("attack::slow_strangers_keep_no_rank_waiting", slow_strangers_keep_no_rank_waiting),
        ("attack::slow_strangers_do_not_extend_the_time_out", slow_strangers_do_not_extend_the_time_out),
        ("attack::conversations_end", conversations_end),
        ("attack::guessed_tokens_are_refused", guessed_tokens_are_refused),
        #[cfg(target_os = "linux")]
        ("attack::floods_of_connections", floods_of_connections),
        #[cfg(target_os = "linux")]
        ("attack::dropped_packets_do_not_extend_the_time_out", dropped_packets_do_not_extend_the_time_out),
        ("attack::others_who_listen_are_not_rank_0", others_who_listen_are_not_rank_0),
    ];

    const MAGIC: &[u8] = b"warpset2";
    const WRONG_TOKEN: u8 = 1;

    pub fn address(place: &str) -> &str {
        place.strip_prefix("tcp:").unwrap()
    }

    fn connect(place: &str) -> TcpStream {
        let stream = wait("one who listens", || TcpStream::connect(address(place)).ok());
        stream.set_read_timeout(Some(HANGS)).unwrap();
        stream
    }

    /// The first bytes of a conversation: a token of this length follows.
    fn greeting(length: usize) -> Vec<u8> {
        [MAGIC, &(length as u32).to_le_bytes()].concat()
    }

    /// Waits until the other side has closed; panics if it does not. Returns what it has sent.
    fn rest(mut stream: TcpStream) -> Vec<u8> {
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert!(!matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "not closed: {error}"),
        }
        rest
    }

    /// Sends one byte after another until the other side has closed. Rank 0 never waits long for a byte.
    fn dribble(mut stream: TcpStream) -> std::thread::JoinHandle<()> {
        std::thread::spawn(move || {
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(50));
            }
        })
    }

    /// A connection that sends nothing, or nonsense, keeps no rank waiting.
    fn strangers_are_ignored() {
        let place = Places::tcp();
        let first = rank(&place, 0, 2).start();
        let silent = connect(&place);
        let _ = connect(&place).write_all(&[0xFF; 100]);
        assert_eq!(
            rest({
                let mut stream = connect(&place);
                stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
                stream
            }),
            b""
        );
        assert_eq!([rank(&place, 1, 2).start(), first].map(says), ["OK", "OK"]);
        assert_eq!(rest(silent), b"");
        assert!(TcpStream::connect(address(&place)).is_err(), "no program listens any more");
    }

    /// Rank 0 returns as soon as all ranks have arrived, even while other processes are sending.
    fn slow_strangers_keep_no_rank_waiting() {
        let (place, token) = (Places::tcp(), "x".repeat(1 << 16));
        let first = rank(&place, 0, 2).with(&token).start();
        let strangers = [&greeting(token.len())[..], &MAGIC[..1], b""].map(|begin| {
            let mut stream = connect(&place);
            stream.write_all(begin).unwrap();
            dribble(stream)
        });
        assert_eq!([rank(&place, 1, 2).with(&token).start(), first].map(says), ["OK", "OK"]);
        // The process of rank 0 has closed them.
        strangers.into_iter().for_each(|stranger| stranger.join().unwrap());
    }

    /// Rank 0 gives up at its time-out, even while other processes are sending.
    fn slow_strangers_do_not_extend_the_time_out() {
        let (place, token) = (Places::tcp(), "x".repeat(1 << 16));
        let first = rank(&place, 0, 2).with(&token).within(Duration::from_secs(1)).start();
        let mut stream = connect(&place);
        let _ = stream.write_all(&greeting(token.len()));
        let stranger = dribble(stream);
        assert!(says(first).contains("missing are {1}"));
        stranger.join().unwrap();
    }

    /// Rank 0 closes connections long before its time-out: silent ones, slow ones, and one with the token that never confirms
    /// what it received.
    fn conversations_end() {
        let (place, token) = (Places::tcp(), "x".repeat(1 << 16));
        let first = rank(&place, 0, 2).with(&token).start();
        let silent = connect(&place);
        let mut slow = connect(&place);
        slow.write_all(&greeting(token.len())).unwrap();
        let slow = dribble(slow);
        let mut ungrateful = connect(&place);
        ungrateful.write_all(&greeting(token.len())).unwrap();
        ungrateful.write_all(&[token.as_bytes(), &[1, 0, 0, 0], &[2, 0, 0, 0]].concat()).unwrap();
        assert_eq!(rest(silent), b"");
        assert!(rest(ungrateful).ends_with(SECRET));
        wait("the end of the slow one", || slow.is_finished().then_some(()));
        assert_eq!([rank(&place, 1, 2).with(&token).start(), first].map(says), ["OK", "OK"], "rank 0 still listened");
    }

    /// A token of another length is refused before it is read, one of the right length when it has been read.
    fn guessed_tokens_are_refused() {
        let place = Places::tcp();
        let first = rank(&place, 0, 2).start();
        for length in [0, 1, TOKEN.len() - 1, TOKEN.len() + 1, 1 << 16, u32::MAX as usize] {
            let mut stream = connect(&place);
            stream.write_all(&greeting(length)).unwrap();
            assert_eq!(rest(stream), [WRONG_TOKEN], "{length} bytes are announced, and none is sent");
        }
        for at in 0..TOKEN.len() {
            let mut guess = TOKEN.as_bytes().to_vec();
            guess[at] ^= 1;
            let mut stream = connect(&place);
            stream.write_all(&[&greeting(guess.len())[..], &guess, &[1, 0, 0, 0], &[2, 0, 0, 0]].concat()).unwrap();
            let said = rest(stream);
            assert!(said.ends_with(&[WRONG_TOKEN]) && said.len() <= 2, "{said:?}");
        }
        assert_eq!([rank(&place, 1, 2).start(), first].map(says), ["OK", "OK"]);
    }

    /// Connections that the foreign process opens.
    const MANY: usize = 900;

    /// The foreign process: opens many connections, and holds them until it is killed.
    pub fn silent(place: &str) {
        let (address, began) = (address(place).parse().unwrap(), Instant::now());
        let mut held = Vec::new();
        for _ in 0..MANY {
            // If the queue of connections is full, the next connection need not succeed.
            held.extend(TcpStream::connect_timeout(&address, Duration::from_millis(100)));
            if began.elapsed() > HANGS / 4 {
                break;
            }
        }
        println!("it says: {}", held.len());
        let _ = std::io::stdin().read(&mut [0]);
    }

    /// Many silent connections take neither memory nor threads, and ranks meet.
    #[cfg(target_os = "linux")]
    fn floods_of_connections() {
        let place = Places::tcp();
        let first = rank(&place, 0, 2).start();
        let id = first.0.id();
        drop(connect(&place));
        let mut stranger = Process::start("silent", &[("PLACE", &place)]);
        let count = |what: &str| std::fs::read_dir(format!("/proc/{id}/{what}")).map_or(0, Iterator::count);
        let limit = 64 + 2;
        let (mut most, mut threads) = (0, 0);
        let (sender, said) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| sender.send(stranger.line()).unwrap());
            wait("all connections", || {
                (most, threads) = (most.max(count("fd")), threads.max(count("task")));
                said.try_recv().ok()
            })
        });
        (most, threads) = (most.max(count("fd")), threads.max(count("task")));
        // A test has standard streams, the listener and two threads besides.
        assert!(most <= limit + 16 && threads <= 8, "{most} files and {threads} threads");
        assert!(most > 16, "{most} files: strangers were connected");
        assert_eq!([rank(&place, 1, 2).start(), first].map(says), ["OK", "OK"]);
    }

    /// A rank gives up at its time-out although the packets that it sends are dropped: the queue of the listener is full.
    #[cfg(target_os = "linux")]
    fn dropped_packets_do_not_extend_the_time_out() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut held = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(500)) {
            held.push(stream);
            assert!(held.len() < 1 << 13, "the queue never fills");
        }
        let place = format!("tcp:{address}");
        let said = run([rank(&place, 1, 2).within(Duration::from_secs(1))]);
        assert!(said[0].contains("rank 0 has not come within 1s"), "{said:?}");
    }

    /// Another program listens: one that sends nothing, one that sends byte after byte, one with another protocol.
    fn others_who_listen_are_not_rank_0() {
        // The second one proceeds, welcomes, and announces 64 KiB.
        let others = [("silence", &b""[..]), ("byte after byte", &[3, 0, 0, 0, 1, 0]), ("SSH", b"SSH-2.0-x\r\n")];
        let ranks = others.map(|(what, reply)| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let place = format!("tcp:{}", listener.local_addr().unwrap());
            let process = rank(&place, 1, 2).within(Duration::from_secs(1)).start();
            // Until the test's process ends.
            std::thread::spawn(move || {
                let mut held = Vec::new();
                for mut stream in listener.incoming().map_while(Result::ok) {
                    let _ = stream.write_all(reply);
                    held.extend(stream.try_clone());
                    if what == "byte after byte" {
                        dribble(stream);
                    }
                }
            });
            (what, process)
        });
        for (what, process) in ranks {
            let said = says(process);
            assert!(said.contains("rank 0 has not come within 1s"), "{what}: {said}");
        }
    }
}

#[cfg(target_os = "linux")]
mod files {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    pub const TESTS: &[(&str, fn())] = &[
        ("files::nobody_else_can_read_them", nobody_else_can_read_them),
        ("files::files_of_others_are_not_believed", files_of_others_are_not_believed),
        ("files::fifos_are_not_waited_for", fifos_are_not_waited_for),
        ("files::files_that_were_left_behind", files_that_were_left_behind),
        ("files::giving_up_while_another_rank_reads", giving_up_while_another_rank_reads),
        ("files::one_meeting_after_another", one_meeting_after_another),
        ("files::a_rank_that_is_killed_in_between", a_rank_that_is_killed_in_between),
    ];

    fn is_there(path: &Path) -> bool {
        std::fs::symlink_metadata(path).is_ok()
    }

    fn mark(places: &Places, rank: usize) -> PathBuf {
        places.0.join(format!("meet.{rank}"))
    }

    fn make_fifo(path: &Path) {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    /// Looks at all files of the rendezvous while it goes on.
    fn nobody_else_can_read_them() {
        let places = Places::new("modes");
        let place = places.file();
        let mut met = BTreeSet::new();
        let mut look = || {
            for entry in std::fs::read_dir(&places.0).unwrap().flatten() {
                let Ok(metadata) = entry.metadata() else { continue };
                assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{:?}", entry.file_name());
                met.insert(entry.file_name().into_string().unwrap());
            }
            met.len()
        };
        let mut ranks = vec![rank(&place, 0, 3).start(), rank(&place, 1, 3).start()];
        wait("the file and a mark", || (look() >= 2).then_some(()));
        ranks.push(rank(&place, 2, 3).start());
        wait("the end of all", || {
            look();
            ranks.iter_mut().all(Process::has_ended).then_some(())
        });
        assert!(ranks.into_iter().map(says).all(|said| said == "OK"));
        assert!(met.contains("meet") && met.contains("meet.1"), "{met:?}");
        assert!(places.left().is_empty(), "{:?}", places.left());
    }

    /// A file that other users could have written, or a link to one, is not trusted.
    fn files_of_others_are_not_believed() {
        let places = Places::new("others");
        let (place, path) = (places.file(), places.path());
        let real = places.0.join("real");
        std::fs::write(&real, b"warpset2 and more").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o666)).unwrap();
        let refused = |what: &str| {
            let said = run([rank(&place, 1, 2)]);
            assert!(said[0].contains("has not written"), "{what}: {said:?}");
        };
        std::fs::copy(&real, &path).unwrap();
        refused("a file that all may write");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&real, &path).unwrap();
        refused("a link");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        refused("a folder");
    }

    /// If there is a FIFO in place of the record or of a mark, no rank waits until a program writes to it.
    fn fifos_are_not_waited_for() {
        let places = Places::new("fifo");
        let (place, path) = (places.file(), places.path());
        make_fifo(&path);
        let said = run([rank(&place, 1, 2)]);
        assert!(said[0].contains("not a regular file"), "{said:?}");
        // Rank 0 replaces what is at the path; the mark comes when it has begun.
        let first = rank(&place, 0, 2).within(Duration::from_secs(1)).start();
        wait("the file", || std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()).then_some(()));
        make_fifo(&mark(&places, 1));
        let said = says(first);
        assert!(said.contains("missing are {1}"), "{said}");
    }

    /// Rank 0 replaces a file that an earlier run with the same token has left behind, and a rank that has read it reads again.
    fn files_that_were_left_behind() {
        let places = Places::new("stale");
        let (place, path) = (places.file(), places.path());
        // A rank 0 that is killed while it waits.
        let mut killed = rank(&place, 0, 2).start();
        wait("the file", || is_there(&path).then_some(()));
        killed.kill();
        assert!(is_there(&path));
        let second = rank(&place, 1, 2).start();
        wait("the mark", || is_there(&mark(&places, 1)).then_some(()));
        assert_eq!([second, rank(&place, 0, 2).start()].map(says), ["OK", "OK"]);
        assert!(places.left().is_empty(), "{:?}", places.left());
    }

    /// Rank 0 gives up after a rank has read the file and before that rank sets its mark: not all ranks have arrived, and the
    /// rank must not conclude that they have.
    fn giving_up_while_another_rank_reads() {
        let places = Places::new("withdrawn");
        let (place, path) = (places.file(), places.path());
        // Rank 0 has removed all marks, and is about to remove its file; rank 2 never comes.
        let mut killed = rank(&place, 0, 3).start();
        wait("the file", || is_there(&path).then_some(()));
        killed.kill();
        let reader = rank(&place, 1, 3).start();
        wait("the mark", || is_there(&mark(&places, 1)).then_some(()));
        std::fs::remove_file(&path).unwrap();
        let said = says(reader);
        assert!(said.contains("rank 0 has given up"), "{said}");
        assert!(places.left().is_empty(), "{:?}", places.left());
    }

    /// Rank 0 returns when all ranks know that all have arrived: the next meeting at the place is another one.
    fn one_meeting_after_another() {
        let places = Places::new("repeated");
        let place = places.file();
        let ranks =
            ["0", "1", "2"].map(|number| Process::start("repeated", &[("PLACE", &place), ("RANK", number), ("RANKS", "3")]));
        assert_eq!(ranks.map(says), ["Ok(true)"; 3]);
        assert!(places.left().is_empty(), "{:?}", places.left());
    }

    /// A rank is killed after it has read the file: the others still meet, and so does the next run at the place.
    fn a_rank_that_is_killed_in_between() {
        let places = Places::new("killed");
        let (place, path) = (places.file(), places.path());
        let first = rank(&place, 0, 3).start();
        let mut killed = rank(&place, 1, 3).start();
        wait("the mark", || std::fs::metadata(mark(&places, 1)).is_ok_and(|found| found.len() == 8).then_some(()));
        killed.kill();
        assert_eq!([rank(&place, 2, 3).start(), first].map(says), ["OK", "OK"]);
        let left = std::fs::read(&path).unwrap_or_default();
        let has = |bytes: &[u8]| left.windows(bytes.len()).any(|window| window == bytes);
        assert!(!has(SECRET) && !has(TOKEN.as_bytes()), "the file that stays has no secret");
        assert_eq!(run((0..3).map(|number| rank(&place, number, 3))), ["OK"; 3]);
        assert!(places.left().is_empty(), "{:?}", places.left());
    }
}
