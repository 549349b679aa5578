/* SPDX-License-Identifier: MIT */
/* `refused DIR`: tries to change the mount at DIR in each possible way. DIR has
 * a file `file`, a directory `dir` and a link `link`. Each attempt must fail
 * with EROFS. Prints the other attempts; then the exit status is 1. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>

static int wrong;

/* Check that a call has failed. rc is the result of the system call. */
static void refused(const char *what, int rc)
{
	if (rc < 0 && errno == EROFS)
		return;
	printf("%s: %s, not EROFS\n", what, rc < 0 ? strerror(errno) : "done");
	wrong = 1;
}

static void try_open(const char *what, const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	refused(what, fd);
	if (fd >= 0)
		/* loses nothing that matters: the test has failed already */
		(void)close(fd);
}

/* Open for writing, and write. After a remount as read-write, the kernel opens
 * without asking the daemon; then the write must fail. */
static void try_write(int flags)
{
	int fd = open("file", flags | O_CLOEXEC);
	ssize_t n;

	if (fd < 0) {
		refused("open for writing", fd);
		return;
	}
	n = write(fd, "x", 1);
	refused("write", (int)n);
	n = pwrite(fd, "x", 1, 100);
	refused("pwrite", (int)n);
	refused("ftruncate", ftruncate(fd, 1));
	(void)close(fd); /* nothing was written */
}

static void try_names(void)
{
	int fd = open(".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	/* libfuse has no handler for O_TMPFILE; the kernel returns this error
	 * then. */
	if (fd >= 0 || errno != EOPNOTSUPP)
		refused("open with O_TMPFILE", fd);
	refused("creat", creat("new", 0600));
	refused("mkdir", mkdir("new", 0700));
	refused("symlink", symlink("file", "new"));
	refused("link", link("file", "new"));
	refused("mkfifo", mkfifo("new", 0600));
	refused("unlink", unlink("file"));
	refused("unlink of a link", unlink("link"));
	refused("rmdir", rmdir("dir"));
	refused("rename", rename("file", "new"));
	refused("rename over", rename("file", "link"));
}

static void try_attributes(void)
{
	struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

	refused("chmod", chmod("file", 0777));
	refused("chmod of a directory", chmod("dir", 0777));
	refused("chown", chown("file", 1, 1));
	refused("lchown", lchown("link", 1, 1));
	refused("truncate", truncate("file", 0));
	refused("utimensat", utimensat(AT_FDCWD, "file", times, 0));
	refused("setxattr", setxattr("file", "user.x", "y", 1, 0));
	refused("removexattr", removexattr("file", "user.x"));
}

int main(int argc, char **argv)
{
	if (argc != 2 || chdir(argv[1]) < 0)
		return 2;
	try_open("open with O_TRUNC", "file", O_RDONLY | O_TRUNC);
	try_open("open for writing with O_TRUNC", "file", O_RDWR | O_TRUNC);
	try_open("open with O_CREAT", "new", O_WRONLY | O_CREAT);
	try_write(O_WRONLY);
	try_write(O_RDWR | O_APPEND);
	try_names();
	try_attributes();
	return wrong;
}
