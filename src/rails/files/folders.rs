//! The folders for the bank's files: `outbox` holds files for the bank, `inbox` files from the
//! bank. An SFTP or host-to-host agent empties `outbox` and fills `inbox`.
//!
//! A file appears in `outbox` whole or not at all: it is written and made durable in `staging`,
//! which no agent uses, and then renamed. A file from the bank is moved to `archive` once it is
//! applied, or to `refused`, beside a note that says why. Such files hold personal data, so only
//! the service's user may read them there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The most bytes of a file from the bank.
pub const FILE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Endings of files that an agent is still writing.
const PARTIAL_ENDINGS: &[&str] = &[".tmp", ".part", ".partial", ".filepart", ".writing"];
/// The ending of a staged file that is not sent, because it holds a paused payout.
pub const WITHDRAWN_ENDING: &str = ".withdrawn";
/// The most files of a folder that one pass handles.
pub const FOLDER_FILES_MAX: usize = 1_000;
/// How long a file without its end may stay unchanged, in seconds, before it counts as cut off
/// rather than growing.
pub const GROWING_SECONDS_MAX: u64 = 600;

#[derive(Clone, Debug)]
pub struct Folders {
    pub outbox: PathBuf,
    pub inbox: PathBuf,
    pub archive: PathBuf,
    pub refused: PathBuf,
    pub staging: PathBuf,
}

/// A file of the inbox as it was found. It is read when a later look finds it unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxFile {
    pub name: String,
    pub bytes_count: u64,
    pub modified: SystemTime,
}

impl InboxFile {
    /// Whether the file has not changed for more than [`GROWING_SECONDS_MAX`].
    pub fn is_at_rest(&self, now: SystemTime) -> bool {
        now.duration_since(self.modified)
            .is_ok_and(|age| age > Duration::from_secs(GROWING_SECONDS_MAX))
    }
}

/// Makes a folder if it is missing. The group may use the folders that an agent serves. The others
/// are for the service's user alone.
fn make(path: &Path, is_served: bool) -> Result<(), String> {
    let mode = if is_served { 0o770 } else { 0o700 };
    let made = fs::DirBuilder::new().recursive(true).mode(mode).create(path);
    made.map_err(|error| format!("the bank's folder {} cannot be made: {error}", path.display()))
}

/// Sets mode 0600, so that only the service's user can read a kept file. For a file that belongs to
/// the agent's user this fails. That does no harm, because the folder around it is closed to
/// others.
fn close_to_others(path: &Path) {
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o600));
}

/// Reads a file, at most one byte more than `FILE_BYTES_MAX`.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// The name under which a file is kept, cut to a length that file systems accept.
fn kept_name(name: &str, prefix: &str) -> String {
    const NAME_BYTES_MAX: usize = 200;
    let end = (0..=name.len().min(NAME_BYTES_MAX))
        .rev()
        .find(|end| name.is_char_boundary(*end))
        .unwrap_or(0);
    format!("{prefix}-{}", name.get(..end).unwrap_or_default())
}

/// The name that a file has in `staging` once it is withdrawn.
pub fn withdrawn_name(name: &str) -> String {
    format!("{name}{WITHDRAWN_ENDING}")
}

/// Tries whether a file can be written into a folder. `Err` says why not.
pub fn check_writable(folder: &Path) -> Result<(), String> {
    let probe = folder.join(format!(".hundi-probe-{}", std::process::id()));
    let tried = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&probe)
        .and_then(|_| fs::remove_file(&probe));
    tried.map_err(|error| {
        format!("the bank's folder {} cannot be written: {error}", folder.display())
    })
}

impl Folders {
    /// Tries whether files can be written into each of the folders. `Err` names the folder.
    pub fn check_writable(&self) -> Result<(), String> {
        [&self.staging, &self.outbox, &self.inbox, &self.archive, &self.refused]
            .into_iter()
            .try_for_each(|folder| check_writable(folder))
    }

    /// Opens the folders below `root` and makes those that are missing. `Err` if they are not on
    /// one file system, because between file systems no rename is possible.
    pub fn open(root: &Path) -> Result<Folders, String> {
        let folders = Folders {
            outbox: root.join("outbox"),
            inbox: root.join("inbox"),
            archive: root.join("archive"),
            refused: root.join("refused"),
            staging: root.join("staging"),
        };
        let mut device = None;
        make(root, true)?;
        let served = [&folders.outbox, &folders.inbox];
        for path in [&folders.staging, &folders.archive, &folders.refused].into_iter().chain(served)
        {
            make(path, served.contains(&path))?;
            let found = fs::metadata(path)
                .map_err(|error| {
                    format!("the bank's folder {} cannot be read: {error}", path.display())
                })?
                .dev();
            if *device.get_or_insert(found) != found {
                return Err(format!(
                    "the bank's folder {} is on another file system than staging: put all five \
                     folders on one",
                    path.display()
                ));
            }
        }
        Ok(folders)
    }

    /// Writes a file into `staging` and makes it durable. Replaces a file of this name.
    pub fn stage(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o640)
            .open(self.staging.join(name))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        sync_folder(&self.staging)
    }
    /// Renames a staged file within `staging`, so that nobody can publish it any more. `false` if
    /// it is not there, because it was published.
    pub fn withdraw(&self, name: &str) -> io::Result<bool> {
        let kept = self.staging.join(withdrawn_name(name));
        match fs::rename(self.staging.join(name), kept) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
            Ok(()) => sync_folder(&self.staging).map(|()| true),
        }
    }
    pub fn is_staged(&self, name: &str) -> io::Result<bool> {
        self.staging.join(name).try_exists()
    }
    /// Removes a file from `staging`, if it is there.
    pub fn unstage(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.staging.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => sync_folder(&self.staging),
        }
    }
    /// Moves a staged file into `outbox`, where the agent sees it, and makes the move durable.
    /// Fails with `AlreadyExists` if a file of this name is in `outbox`.
    pub fn publish(&self, name: &str) -> io::Result<()> {
        let target = self.outbox.join(name);
        if target.try_exists()? {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "a file of this name is in the outbox already",
            ));
        }
        fs::rename(self.staging.join(name), target)?;
        sync_folder(&self.outbox)?;
        sync_folder(&self.staging)
    }
    /// How many files in `outbox` the agent has not taken, and when the oldest was written, in Unix
    /// seconds. Looks at no more than `FOLDER_FILES_MAX` files.
    pub fn untaken(&self) -> io::Result<(i64, Option<i64>)> {
        let (mut count, mut oldest) = (0, None);
        for entry in fs::read_dir(&self.outbox)?.take(FOLDER_FILES_MAX) {
            // A file may go while it is looked at.
            let Ok(metadata) = entry?.metadata() else { continue };
            if metadata.is_file() {
                count += 1;
                oldest = Some(oldest.map_or(metadata.mtime(), |at: i64| at.min(metadata.mtime())));
            }
        }
        Ok((count, oldest))
    }

    /// What is wrong with the folders' modes and groups: what keeps an agent of their group out,
    /// and what lets others in.
    pub fn agent_faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let served = [("outbox", &self.outbox), ("inbox", &self.inbox)];
        for (name, path) in served {
            let Ok(found) = fs::metadata(path) else { continue };
            let (mode, group) = (found.mode() & 0o7777, found.gid());
            if mode & 0o070 != 0o070 {
                faults.push(format!(
                    "{name} has mode {mode:04o}: an agent of its group ({group}) cannot use it; \
                     chmod g+rwxs"
                ));
            }
            if mode & 0o007 != 0 {
                faults.push(format!("{name} has mode {mode:04o}: anybody can use it; chmod o-rwx"));
            }
        }
        if let (Some(given), Ok(served)) = (self.group_of_new_files(), fs::metadata(&self.outbox))
            && given != served.gid()
        {
            faults.push(format!(
                "new files get the group {given}, but outbox has the group {}: an agent of \
                 outbox's group cannot read them; give staging the same group, and chmod g+s",
                served.gid()
            ));
        }
        for (name, path) in
            [("staging", &self.staging), ("archive", &self.archive), ("refused", &self.refused)]
        {
            let mode = fs::metadata(path).map_or(0, |found| found.mode() & 0o7777);
            if mode & 0o007 != 0 {
                faults.push(format!("{name} has mode {mode:04o}: anybody can use it; chmod o-rwx"));
            }
        }
        faults
    }

    /// The group that a new file in `staging` gets. `None` if no file can be written there.
    fn group_of_new_files(&self) -> Option<u32> {
        let probe = self.staging.join(format!(".hundi-probe-{}", std::process::id()));
        let made = OpenOptions::new().write(true).create(true).truncate(true).open(&probe).ok()?;
        let group = made.metadata().ok().map(|found| found.gid());
        fs::remove_file(&probe).ok()?;
        group
    }

    /// Names of the files in `staging`, at most `FOLDER_FILES_MAX`.
    pub fn staged(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.staging)?.take(FOLDER_FILES_MAX) {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    /// The files in the inbox, oldest first, at most `FOLDER_FILES_MAX`. Left out are hidden files,
    /// folders, links, and files whose names are not UTF-8 or have one of `PARTIAL_ENDINGS`.
    pub fn incoming(&self) -> io::Result<Vec<InboxFile>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.inbox)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let lower = name.to_lowercase();
            if name.starts_with('.') || PARTIAL_ENDINGS.iter().any(|ending| lower.ends_with(ending))
            {
                continue;
            }
            // A file may go while it is looked at.
            let Ok(metadata) = fs::symlink_metadata(entry.path()) else { continue };
            if metadata.is_file() {
                found.push(InboxFile {
                    name,
                    bytes_count: metadata.len(),
                    modified: metadata.modified()?,
                });
            }
        }
        found.sort_by(|a, b| (a.modified, &a.name).cmp(&(b.modified, &b.name)));
        found.truncate(FOLDER_FILES_MAX);
        Ok(found)
    }
    /// Reads a file of the inbox, at most one byte more than `FILE_BYTES_MAX`, so that the reader
    /// notices a file that is too large.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        read_file(&self.inbox.join(name))
    }
    /// Moves a file from `inbox` to `archive`. `prefix` is put before its name, so that the file
    /// replaces no other one of that name. `bytes` are what was read of it.
    pub fn archive(&self, name: &str, prefix: &str, bytes: &[u8]) -> io::Result<()> {
        self.keep(name, &self.archive, &kept_name(name, prefix), bytes)
    }
    /// Moves a file from `inbox` to `folder`, where it gets the name `kept`. If the agent has
    /// replaced the file since it was read, the new file is put back into `inbox` under the name
    /// `kept`, so that it is read too, and `bytes` are written to `folder` instead.
    fn keep(&self, name: &str, folder: &Path, kept: &str, bytes: &[u8]) -> io::Result<()> {
        let path = folder.join(kept);
        fs::rename(self.inbox.join(name), &path)?;
        if read_file(&path)? != bytes {
            // Not under its own name: the agent may have put another file of that name there again.
            fs::rename(&path, self.inbox.join(kept))?;
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(bytes)?;
            file.sync_all()?;
        }
        close_to_others(&path);
        sync_folder(folder)?;
        sync_folder(&self.inbox)
    }
    /// Moves a file from `inbox` to `refused`, beside a note that says why. `bytes` are what was
    /// read of it.
    pub fn refuse(&self, name: &str, prefix: &str, reason: &str, bytes: &[u8]) -> io::Result<()> {
        let name_kept = kept_name(name, prefix);
        let note_path = self.refused.join(format!("{name_kept}.reason.txt"));
        let mut note = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(note_path)?;
        writeln!(note, "{reason}")?;
        note.sync_all()?;
        self.keep(name, &self.refused, &name_kept, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary() -> PathBuf {
        let mut random = [0_u8; 8];
        getrandom::fill(&mut random).unwrap();
        std::env::temp_dir().join(format!("hundi-folders-{:016x}", u64::from_be_bytes(random)))
    }

    #[test]
    fn a_file_appears_whole_and_unfinished_ones_are_left_alone() {
        let root = temporary();
        let folders = Folders::open(&root).unwrap();
        folders.stage("a.xml", b"whole").unwrap();
        assert!(
            folders.is_staged("a.xml").unwrap()
                && fs::read_dir(&folders.outbox).unwrap().next().is_none()
        );
        folders.publish("a.xml").unwrap();
        assert_eq!(fs::read(folders.outbox.join("a.xml")).unwrap(), b"whole");
        assert!(!folders.is_staged("a.xml").unwrap());
        folders.stage("a.xml", b"other").unwrap();
        assert!(
            folders.publish("a.xml").is_err(),
            "a file that waits in the outbox is never replaced"
        );
        folders.unstage("a.xml").unwrap();
        folders.unstage("a.xml").unwrap();

        for name in [".hidden", "b.xml.part", "c.TMP", "d.filepart", "e.xml"] {
            fs::write(folders.inbox.join(name), b"x").unwrap();
        }
        fs::create_dir(folders.inbox.join("folder.xml")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", folders.inbox.join("link.xml")).unwrap();
        let seen = folders.incoming().unwrap();
        assert_eq!(seen.iter().map(|seen| seen.name.as_str()).collect::<Vec<_>>(), ["e.xml"]);
        assert!(!seen[0].is_at_rest(seen[0].modified + Duration::from_secs(GROWING_SECONDS_MAX)));
        assert!(
            seen[0].is_at_rest(seen[0].modified + Duration::from_secs(GROWING_SECONDS_MAX + 1))
        );
        let long = format!("{}.xml", "é".repeat(125));
        fs::write(folders.inbox.join(&long), b"x").unwrap();
        let reason = "the reason";
        folders.refuse(&long, "0123456789abcdef", reason, b"x").unwrap();
        folders.refuse("e.xml", "mark", "the reason", b"x").unwrap();
        assert_eq!(
            fs::read_to_string(folders.refused.join("mark-e.xml.reason.txt")).unwrap(),
            "the reason\n"
        );
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_file_that_replaces_one_that_was_read_is_read_too() {
        let root = temporary();
        let folders = Folders::open(&root).unwrap();
        let place = |text: &[u8]| fs::write(folders.inbox.join("a.xml"), text).unwrap();
        let names = || -> Vec<String> {
            folders.incoming().unwrap().into_iter().map(|seen| seen.name).collect()
        };
        place(b"first");
        let read = folders.read("a.xml").unwrap();
        place(b"second");
        folders.archive("a.xml", "mark", &read).unwrap();
        assert_eq!(fs::read(folders.archive.join("mark-a.xml")).unwrap(), b"first");
        assert_eq!(names(), ["mark-a.xml"]);
        assert_eq!(folders.read("mark-a.xml").unwrap(), b"second");

        place(b"third");
        let read = folders.read("a.xml").unwrap();
        place(b"fourth");
        folders.refuse("a.xml", "mark3", "the reason", &read).unwrap();
        assert_eq!(fs::read(folders.refused.join("mark3-a.xml")).unwrap(), b"third");
        assert_eq!(folders.read("mark3-a.xml").unwrap(), b"fourth");

        // Of a file that is too large, only its beginning is compared.
        place(&vec![b'x'; FILE_BYTES_MAX + 10]);
        let read = folders.read("a.xml").unwrap();
        folders.refuse("a.xml", "mark5", "too large", &read).unwrap();
        assert_eq!(names().len(), 2);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn only_the_services_user_can_read_kept_files() {
        let root = temporary();
        let folders = Folders::open(&root).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        for name in ["taken.xml", "refused.xml"] {
            let path = folders.inbox.join(name);
            fs::write(&path, b"x").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        }
        folders.archive("taken.xml", "mark", b"x").unwrap();
        folders.refuse("refused.xml", "mark", "the reason", b"x").unwrap();
        folders.stage("out.xml", b"whole").unwrap();
        for folder in [&folders.staging, &folders.archive, &folders.refused] {
            assert_eq!(mode(folder), 0o700, "{}", folder.display());
        }
        for folder in [&root, &folders.outbox, &folders.inbox] {
            assert_eq!(mode(folder) & 0o007, 0, "{}", folder.display());
        }
        assert_eq!(mode(&folders.archive.join("mark-taken.xml")), 0o600);
        assert_eq!(mode(&folders.refused.join("mark-refused.xml")), 0o600);
        assert_eq!(mode(&folders.refused.join("mark-refused.xml.reason.txt")), 0o600);
        assert_eq!(
            mode(&folders.staging.join("out.xml")) & 0o007,
            0,
            "the agent reads it by its group"
        );
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn modes_that_keep_the_agent_out_or_let_others_in_are_named() {
        let root = temporary();
        let folders = Folders::open(&root).unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        for path in [&folders.outbox, &folders.inbox] {
            set(path, 0o770);
        }
        assert_eq!(folders.agent_faults(), Vec::<String>::new());
        set(&folders.outbox, 0o750);
        set(&folders.inbox, 0o777);
        set(&folders.archive, 0o705);
        let faults = folders.agent_faults();
        assert_eq!(faults.len(), 3, "{faults:?}");
        for (fault, wanted) in faults.iter().zip(["outbox has mode 0750", "inbox", "archive"]) {
            assert!(fault.starts_with(wanted), "{fault}");
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn files_that_the_agent_has_not_taken_are_counted() {
        let root = temporary();
        let folders = Folders::open(&root).unwrap();
        assert_eq!(folders.untaken().unwrap(), (0, None));
        fs::write(folders.outbox.join("a.xml"), "x").unwrap();
        let (count, oldest) = folders.untaken().unwrap();
        assert!(count == 1 && oldest.is_some());
        fs::remove_dir_all(root).unwrap();
    }
}
