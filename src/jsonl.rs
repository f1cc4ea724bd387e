//! Files of JSON lines that are only ever added to: how one is opened again after whoever wrote it has died.
//!
//! A crash tears at most the last line. It is ended, not removed: what is in such a file stays, byte for byte, and a
//! reader skips what is no JSON. So at any time the file is a prefix of the later file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Makes a file for adding lines, readable by the user alone. Fails if there is one.
pub fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)
}

/// Opens one that is there.
pub fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).open(path)
}

/// Ends a last line that was torn, so that the next one begins a line of its own. True if it was.
pub fn end_torn_line(mut file: &File) -> io::Result<bool> {
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let torn = last != *b"\n";
    if torn {
        file.write_all(b"\n")?;
    }
    Ok(torn)
}

/// Hands every line that is not blank to `each`, without its end. Bytes, because half a line can be half a character.
pub fn each_line(file: File, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let (mut reader, mut line) = (BufReader::with_capacity(256 << 10, file), Vec::new());
    while reader.read_until(b'\n', &mut line)? > 0 {
        let text = line.trim_ascii_end();
        if !text.is_empty() {
            each(text);
        }
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_ended_once_and_nothing_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "{}\n{\"a").unwrap();
        assert!(end_torn_line(&open(&path).unwrap()).unwrap());
        assert!(!end_torn_line(&open(&path).unwrap()).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"{}\n{\"a\n");
        let mut lines = Vec::new();
        each_line(open(&path).unwrap(), |line| lines.push(line.to_vec())).unwrap();
        assert_eq!(lines, [b"{}".to_vec(), b"{\"a".to_vec()]);
    }

    #[test]
    fn an_empty_file_has_no_torn_line() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!end_torn_line(&create(&dir.path().join("f")).unwrap()).unwrap());
    }
}
