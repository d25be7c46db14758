//! Models with parameters, in DVE: algorithms whose scaled instances the papers measure, without giving their texts.
//!
//! A process of a model is written once here, as a text in which `@` stands for the number of the process. Where an instance has
//! the count of states that a paper prints, its transitions are those of the paper's model, too.

use anyhow::{Result, bail};

/// Returns the text of a model: a family, and its parameters.
///
/// # Errors
///
/// The family is unknown, or needs another number of parameters.
pub fn text(family: &str, parameters: &[u32]) -> Result<String> {
    Ok(match (family, parameters) {
        ("adding", [limit]) => adding(*limit),
        ("anderson", [processes, faulty @ 0..=1]) => anderson(*processes, *faulty == 1),
        ("at", [processes, least, most]) => timed(*processes, *least, *most),
        ("bakery", [processes, numbers]) => bakery(*processes, *numbers),
        ("elevator", [floors]) => elevator(*floors),
        ("filters", [processes, levels]) => filters(*processes, *levels),
        ("lamport", [processes, clears @ 0..=1, compares @ 0..=1]) => lamport(*processes, *clears == 1, *compares == 1),
        ("phils", [count]) => philosophers(*count),
        _ => bail!(
            "no model `{family}` with {} parameters: the models are adding LIMIT, anderson PROCESSES FAULTY, at PROCESSES LEAST \
             MOST, bakery PROCESSES NUMBERS, elevator FLOORS, filters PROCESSES FILTERS, lamport PROCESSES CLEARS COMPARES and \
             phils PHILOSOPHERS; FAULTY, CLEARS and COMPARES are 0 or 1",
            parameters.len()
        ),
    })
}

/// Declarations, and `count` processes of the same text.
fn system(declarations: &str, count: u32, process: &str) -> String {
    let processes = (0..count).map(|number| format!("process P_{number} {{\n{}}}\n", process.replace('@', &number.to_string())));
    format!("{declarations}\n{}system async;\n", processes.collect::<String>())
}

/// The initial values of an array, all equal.
fn all(value: u32, count: u32) -> String {
    vec![value.to_string(); count as usize].join(", ")
}

/// Two processes that double a shared number until it reaches the limit, and overwrite it.
fn adding(limit: u32) -> String {
    let process = format!(
        "state read, add, write;\ninit read;\ntrans\n\
         read -> add {{ guard c < {limit}; effect x_@ = c; }},\n\
         add -> write {{ effect x_@ = x_@ + c; }},\n\
         write -> read {{ effect c = x_@; }};\n"
    );
    system("int c = 1, x_0, x_1;", 2, &process)
}

/// Anderson's lock, a queue in an array. The faulty one clears the slot before its own.
fn anderson(processes: u32, is_faulty: bool) -> String {
    let n = processes;
    let cleared = if is_faulty { format!("(place + {n} - 1) % {n}") } else { "place".into() };
    let process = format!(
        "byte place;\nstate idle, drawn, waits, may, critical;\ninit idle;\ntrans\n\
         idle -> drawn {{ effect place = next, next = next + 1; }},\n\
         drawn -> waits {{ guard place == {n} - 1; effect next = next - {n}; }},\n\
         drawn -> waits {{ guard place != {n} - 1; effect place = place % {n}; }},\n\
         waits -> may {{ guard has[place] == 1; }},\n\
         may -> critical {{ effect has[{cleared}] = 0; }},\n\
         critical -> idle {{ effect has[(place + 1) % {n}] = 1; }};\n"
    );
    system(&format!("byte has[{n}] = {{1, {}}};\nbyte next;", all(0, n - 1)), n, &process)
}

/// The timing-based mutual exclusion of Alur and Taubenfeld: a step takes at most `least` units, the delay is `most` units.
fn timed(processes: u32, least: u32, most: u32) -> String {
    let n = processes;
    let runs = (0..n).map(|at| format!("t[{at}] != 0")).collect::<Vec<_>>().join(" && ");
    let ticks = (0..n).map(|at| format!("t[{at}] = (t[{at}] - 1) | ((t[{at}] == 255) * 255)")).collect::<Vec<_>>().join(", ");
    let declarations = format!(
        "byte x, y = 255;\nbyte z;\nbyte t[{n}] = {{{}}};\n\
         process Timer {{ state q; init q; trans q -> q {{ guard {runs}; effect {ticks}; }}; }}",
        all(255, n)
    );
    let process = format!(
        "state NCS, p2, p3, p4, p5, p6, p7, p8, p9, CS, p12, p13;\ninit NCS;\ntrans\n\
         NCS -> p3 {{ effect x = @, t[@] = 255; }},\n\
         p3 -> p4 {{ guard y == 255; effect t[@] = {least}; }},\n\
         p4 -> p5 {{ effect y = @, t[@] = {least}; }},\n\
         p5 -> p9 {{ guard x == @; effect t[@] = {least}; }},\n\
         p9 -> CS {{ effect z = 1, t[@] = 255; }},\n\
         p5 -> p6 {{ guard x != @; effect t[@] = {most}; }},\n\
         p6 -> p7 {{ guard t[@] == 0; effect t[@] = {least}; }},\n\
         p7 -> NCS {{ guard y != @; effect t[@] = {least}; }},\n\
         p7 -> p8 {{ guard y == @; effect t[@] = 255; }},\n\
         p8 -> CS {{ guard z == 0; }},\n\
         CS -> p12 {{ effect z = 0, t[@] = {least}; }},\n\
         p12 -> NCS {{ guard y != @; effect t[@] = 255; }},\n\
         p12 -> p13 {{ guard y == @; effect t[@] = {least}; }},\n\
         p13 -> NCS {{ effect y = 255, t[@] = 255; }};\n"
    );
    system(&declarations, n, &process)
}

/// Lamport's bakery, with numbers of at most `numbers`.
fn bakery(processes: u32, numbers: u32) -> String {
    let n = processes;
    let process = format!(
        "byte j, max;\nstate NCS, choose, for_loop, wait, CS;\ninit NCS;\ntrans\n\
         NCS -> choose {{ effect choosing[@] = 1, j = 0, max = 0; }},\n\
         choose -> choose {{ guard j < {n} and number[j] > max; effect max = number[j], j = j + 1; }},\n\
         choose -> choose {{ guard j < {n} and number[j] <= max; effect j = j + 1; }},\n\
         choose -> for_loop {{ guard j == {n} and max < {numbers}; effect number[@] = max + 1, j = 0, choosing[@] = 0; }},\n\
         for_loop -> wait {{ guard j < {n} and choosing[j] == 0; }},\n\
         wait -> for_loop {{ guard number[j] == 0 or (number[j] > number[@]) or (number[j] == number[@] and @ <= j); \
         effect j = j + 1; }},\n\
         for_loop -> CS {{ guard j == {n}; }},\n\
         CS -> NCS {{ effect number[@] = 0; }};\n"
    );
    system(&format!("byte choosing[{n}];\nbyte number[{n}];"), n, &process)
}

/// An elevator that goes on in one direction while there are requests.
fn elevator(floors: u32) -> String {
    let requests = (0..floors).map(|floor| format!("read -> read {{ guard req[{floor}] == 0; effect req[{floor}] = 1; }}"));
    let requests = requests.collect::<Vec<_>>().join(",\n");
    format!(
        "byte req[{floors}];\nint t, p;\nbyte v;\n\
         process cabin {{\nstate idle, mov, open;\ninit idle;\ntrans\n\
         idle -> mov {{ guard v > 0; }},\n\
         mov -> open {{ guard t == p; }},\n\
         mov -> mov {{ guard t < p; effect p = p - 1; }},\n\
         mov -> mov {{ guard t > p; effect p = p + 1; }},\n\
         open -> idle {{ effect req[p] = 0, v = 0; }};\n}}\n\
         process environment {{\nstate read;\ninit read;\ntrans\n{requests};\n}}\n\
         process controller {{\nbyte ldir;\nstate wait, work, done;\ninit wait;\ntrans\n\
         wait -> work {{ guard v == 0; effect t = t + (2 * ldir) - 1; }},\n\
         work -> wait {{ guard t < 0 || t == {floors}; effect ldir = 1 - ldir; }},\n\
         work -> done {{ guard t >= 0 && t < {floors} && req[t] == 1; }},\n\
         work -> work {{ guard t >= 0 && t < {floors} && req[t] == 0; effect t = t + (2 * ldir) - 1; }},\n\
         done -> wait {{ effect v = 1; }};\n}}\nsystem async;\n"
    )
}

/// Leader election by filters, each of which stops at least one process.
fn filters(processes: u32, levels: u32) -> String {
    let process = "byte curr;\nstate p1, p2, p3, p4, p5, p6, p7, p8, p9, elected;\ninit p1;\ntrans\n\
                   p1 -> p2 { effect turn[curr] = @; },\n\
                   p2 -> p3 { guard b[curr] == 0; },\n\
                   p3 -> p4 { effect b[curr] = 1; },\n\
                   p4 -> p5 { guard turn[curr] != @; },\n\
                   p5 -> p6 { effect c[curr] = 1; },\n\
                   p6 -> p7 { effect b[curr] = 0; },\n\
                   p4 -> p8 { guard turn[curr] == @; },\n\
                   p8 -> p9 { guard curr > 0 && c[curr - 1] == 0; },\n\
                   p9 -> elected { },\n\
                   p8 -> p1 { guard curr == 0 || c[curr - 1] == 1; effect curr = curr + 1; };\n";
    system(&format!("byte turn[{levels}];\nbyte b[{levels}];\nbyte c[{levels}];"), processes, process)
}

/// Lamport's fast mutual exclusion. `clears`: a process that has to wait withdraws the request of the process in x, instead of
/// its own. `compares`: it enters if y is x, instead of its own number.
fn lamport(processes: u32, clears: bool, compares: bool) -> String {
    let n = processes;
    let (cleared, entered) = (if clears { "x" } else { "@" }, if compares { "x" } else { "@" });
    let process = format!(
        "byte j;\nstate NCS, CS, q1, q2, q22, p, q3, q4, q5, e1;\ninit NCS;\ntrans\n\
         NCS -> q1 {{ effect b[@] = 1; }},\n\
         q1 -> q2 {{ effect x = @; }},\n\
         q2 -> q22 {{ guard y != 255; effect b[{cleared}] = 0; }},\n\
         q22 -> NCS {{ guard y == 255; }},\n\
         q2 -> p {{ guard y == 255; }},\n\
         p -> q3 {{ effect y = @; }},\n\
         q3 -> CS {{ guard x == @; }},\n\
         q3 -> q4 {{ guard x != @; effect b[@] = 0, j = 0; }},\n\
         q4 -> q4 {{ guard j < {n} && b[j] == 0; effect j = j + 1; }},\n\
         q4 -> q5 {{ guard j == {n}; }},\n\
         q5 -> CS {{ guard y == {entered}; }},\n\
         q5 -> NCS {{ guard y == 255; }},\n\
         CS -> e1 {{ effect y = 255; }},\n\
         e1 -> NCS {{ effect b[@] = 0; }};\n"
    );
    system(&format!("byte b[{n}];\nbyte x = 255, y = 255;"), n, &process)
}

/// Dining philosophers who take the fork of their number first: 3^n - 1 states.
fn philosophers(n: u32) -> String {
    let process = format!(
        "state think, one, eat, finish;\ninit think;\ntrans\n\
         think -> one {{ guard fork[@] == 0; effect fork[@] = 1; }},\n\
         one -> eat {{ guard fork[(@ + 1) % {n}] == 0; effect fork[(@ + 1) % {n}] = 1; }},\n\
         eat -> finish {{ effect fork[@] = 0; }},\n\
         finish -> think {{ effect fork[(@ + 1) % {n}] = 0; }};\n"
    );
    system(&format!("byte fork[{n}];"), n, &process)
}
