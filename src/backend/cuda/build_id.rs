//! Identifies the build of a loaded library. Many builds have the same version number.

/// Build of the loaded file that has the code at `address`: its build id, which linkers write into it. If it has none, size and
/// time of change of the file, which may have been replaced since it was loaded. `None` if there is no such file.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub(super) fn of_code_at(address: usize) -> Option<String> {
    let mut search = FileSearch { address, found: None };
    // SAFETY: `visit` is called before this returns, with the `search` that it gets here, which nothing else uses meanwhile.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found.flatten()
}

/// Other systems do not provide this.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
pub(super) fn of_code_at(_address: usize) -> Option<String> {
    None
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
struct FileSearch {
    address: usize,
    /// Set when the file was met.
    found: Option<Option<String>>,
}

/// Called for each loaded file; ends the iteration by a value other than 0.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
unsafe extern "C" fn visit(file: *mut libc::dl_phdr_info, _: usize, search: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `dl_iterate_phdr` gives a file that stays loaded during the call, and the pointer that `of_code_at` gave it.
    let (file, search) = unsafe { (&*file, &mut *search.cast::<FileSearch>()) };
    // SAFETY: the file has this number of headers, which stay as long as it is loaded.
    let headers = unsafe { std::slice::from_raw_parts(file.dlpi_phdr, file.dlpi_phnum.into()) };
    let start = |header: &libc::Elf64_Phdr| (file.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
    let has = |header: &libc::Elf64_Phdr, address: usize, bytes: usize| {
        let offset = address.wrapping_sub(start(header));
        header.p_type == libc::PT_LOAD && offset.checked_add(bytes).is_some_and(|end| end <= header.p_memsz as usize)
    };
    if !headers.iter().any(|header| has(header, search.address, 1)) {
        return 0;
    }
    let notes = headers.iter().filter(|header| header.p_type == libc::PT_NOTE);
    // Parts of the file that are not loaded cannot be read.
    let loaded = notes.filter(|note| headers.iter().any(|header| has(header, start(note), note.p_memsz as usize)));
    let id = loaded.into_iter().find_map(|note| {
        // SAFETY: within a segment that is loaded, and readable, as all segments of a library with notes are.
        let bytes = unsafe { std::slice::from_raw_parts(start(note) as *const u8, note.p_memsz as usize) };
        build_id(bytes)
    });
    let hexadecimal = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    search.found = Some(id.map(hexadecimal).or_else(|| {
        // SAFETY: the name is a text that ends in zero, and stays as long as the file is loaded.
        let name = unsafe { std::ffi::CStr::from_ptr(file.dlpi_name) };
        of_file(std::path::Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name.to_bytes())))
    }));
    1
}

/// The build id among the notes of an ELF file.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    const BUILD_ID: u32 = 3;
    while let Some((head, rest)) = notes.split_at_checked(12) {
        let [name_bytes, bytes, kind] = [0, 4, 8].map(|at| u32::from_le_bytes(head[at..at + 4].try_into().expect("4 bytes")));
        let (name, rest) = rest.split_at_checked(name_bytes as usize)?;
        // Names and contents are filled up to multiples of 4 bytes.
        let (_, rest) = rest.split_at_checked(name_bytes.wrapping_neg() as usize % 4)?;
        let (content, rest) = rest.split_at_checked(bytes as usize)?;
        if kind == BUILD_ID && name == b"GNU\0" && !content.is_empty() {
            return Some(content);
        }
        notes = rest.get(bytes.wrapping_neg() as usize % 4..)?;
    }
    None
}

/// Size and time of change of a file.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn of_file(path: &std::path::Path) -> Option<String> {
    let file = std::fs::metadata(path).ok()?;
    let changed = file.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(format!("of {} bytes, changed at {} s and {} ns", file.len(), changed.as_secs(), changed.subsec_nanos()))
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use super::*;
    use object::Object;

    /// The C library is a loaded file whose code is known: its build id is that of the file on disk.
    #[test]
    fn the_id_is_that_of_the_file() {
        let function = libc::dlsym as *const () as usize;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let at = |text: &str| usize::from_str_radix(text, 16).unwrap();
        let mut mapped = maps.lines().filter(|line| {
            let (first, last) = line.split(' ').next().unwrap().split_once('-').unwrap();
            (at(first)..at(last)).contains(&function)
        });
        let path = mapped.next().and_then(|line| line.split_whitespace().nth(5)).expect("the file with that code");
        let bytes = std::fs::read(path).unwrap();
        let id = object::File::parse(&*bytes).unwrap().build_id().unwrap();
        let expected = match id {
            Some(id) => id.iter().map(|byte| format!("{byte:02x}")).collect(),
            None => of_file(path.as_ref()).unwrap(),
        };
        assert_eq!(of_code_at(function), Some(expected));
        // Memory of no file.
        let own = Box::new(0u8);
        assert_eq!(of_code_at(&raw const *own as usize), None);
    }

    #[test]
    fn notes_are_read_whole_or_not() {
        let note = |name: &[u8], kind: u32, content: &[u8]| {
            let head = [name.len() as u32, content.len() as u32, kind].map(u32::to_le_bytes).concat();
            let filled = |bytes: &[u8]| [bytes, &vec![0; bytes.len().wrapping_neg() % 4]].concat();
            [head, filled(name), filled(content)].concat()
        };
        let (other, of_another) = (note(b"GNU\0", 1, &[7; 5]), note(b"Xen\0", 3, &[8; 4]));
        let id = note(b"GNU\0", 3, &[1, 2, 3, 4, 5]);
        assert_eq!(build_id(&[&other[..], &of_another, &id].concat()), Some(&[1, 2, 3, 4, 5][..]));
        assert_eq!(build_id(&[&other[..], &of_another].concat()), None);
        assert_eq!(build_id(&note(b"GNU\0", 3, &[])), None);
        for cut in 0..id.len() - 3 {
            assert_eq!(build_id(&id[..cut]), None, "{cut} bytes");
        }
        assert_eq!(build_id(&[0xff; 40]), None);
    }

    #[test]
    fn files_without_an_id_differ_by_size_and_time() {
        let path = std::env::temp_dir().join(format!("warpset-build-{}", std::process::id()));
        let write = |bytes: &[u8], seconds| {
            std::fs::write(&path, bytes).unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
            of_file(&path).expect("the file is there")
        };
        let first = write(b"first", 1000);
        assert_eq!(first, write(b"other", 1000));
        assert!(first != write(b"longer", 1000) && first != write(b"first", 1001));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(of_file(&path), None);
    }
}
