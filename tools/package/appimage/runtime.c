/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front part of hearth's AppImage: an ELF file, static, with the mark of the second type of AppImages in its head and a
 * squashfs behind its end. It mounts nothing, so that it needs no FUSE: the first start unpacks the squashfs into a folder
 * of this user's, which is named by its content, and each start runs AppRun from there.
 *
 * A copy is made beside its name and gets that in one step when it is whole, under a lock, so that neither a kill nor a
 * second start leaves or meets half of one. Each start looks whether all files are there, of their lengths: what cleans
 * temporary folders takes single files.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "image.h"
#include "place.h"

enum { FAILED = 1, WRONG_USAGE = 2, WAIT_MS = 60000, LOOK_MS = 50, WHY_LEN = PATH_MAX + 64 };

static const char help[] =
	"This is an AppImage: hearth with all that it needs, in one file. Its words are hearth's, of which\n"
	"'--help' and 'help' tell; a file alone is shown on a page in the browser.\n"
	"\n"
	"  --appimage-help             print this\n"
	"  --appimage-extract          unpack it into squashfs-root here, and run nothing\n"
	"  --appimage-extract-and-run  has no effect: it is never mounted, but unpacked at its first start, into\n"
	"                              hearth-appimage below $XDG_CACHE_HOME, ~/.cache, $TMPDIR or /tmp, and run there\n"
	"  --appimage-offset           print where in the file the squashfs begins, in bytes\n"
	"  --appimage-version          print the version of hearth in it\n";

__attribute__((format(printf, 2, 3))) static int say(int status, const char *format, ...)
{
	va_list args;

	fputs("hearth: error: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return status;
}

static int say_damaged(void)
{
	return say(FAILED,
		   "this AppImage is damaged or cut; download it again, and compare it with the release's SHA256SUMS");
}

/* --- the copy --- */

/* Takes the lock of the copy @name in the folder @place. A descriptor, or -errno; -ETIMEDOUT: somebody keeps it. */
static int take_lock(int place, const char *name)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };
	char file[NAME_MAX];
	int fd, err = -ETIMEDOUT;

	snprintf(file, sizeof(file), "%s.lock", name);
	fd = openat(place, file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	for (int ms = 0; ms < WAIT_MS; ms += LOOK_MS) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return fd;
		if (errno != EWOULDBLOCK) {
			err = -errno;
			break;
		}
		nanosleep(&pause, NULL);
	}
	close(fd);
	return err;
}

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *ftw)
{
	(void)stat, (void)kind, (void)ftw;
	return remove(path) ? -errno : 0;
}

static int remove_all(const char *path)
{
	const int err = nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);

	if (err == -1)
		return errno == ENOENT ? 0 : -errno;
	return err;
}

/* Unpacks into the folder @path, which is made. */
static int unpack_into(struct image *image, const char *path, bool tells)
{
	int dir, err;

	if (mkdir(path, tells ? 0755 : 0700))
		return -errno;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	err = image_unpack(image, dir, tells);
	close(dir);
	return err;
}

static int is_whole(struct image *image, const char *path, bool *is_whole_ret)
{
	const int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int err;

	*is_whole_ret = false;
	if (dir < 0)
		return errno == ENOENT ? 0 : -errno;
	err = image_is_whole(image, dir, is_whole_ret);
	close(dir);
	return err;
}

/* Has a whole copy at @path, whose lock is taken: what is there, or a new one, made at @path.new. */
static int have_copy(struct image *image, const char *path)
{
	char fresh[PATH_MAX + 8];
	bool is_there;
	int err = is_whole(image, path, &is_there);

	if (err || is_there)
		return err;
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	err = remove_all(fresh); /* of a start that was killed */
	if (!err)
		err = unpack_into(image, fresh, false);
	if (!err)
		err = remove_all(path);
	if (!err && rename(fresh, path))
		err = -errno;
	if (err)
		remove_all(fresh);
	return err;
}

/* Adds to the reasons for which there is no place. */
static void add_why(char *all, size_t size, const char *why)
{
	const size_t len = strlen(all);

	if (why[0])
		snprintf(all + len, size - len, "%s%s", len ? "; " : "", why);
}

/* Has a whole copy in the first place that will do; its path goes into @path_ret. An exit status; it has been said why. */
static int find_copy(struct image *image, char path_ret[static PATH_MAX])
{
	char place[PATH_MAX], why[WHY_LEN], all[PLACES * WHY_LEN] = "";

	for (int i = 0; i < PLACES; i++) {
		const int dir = place_open(i, place, why, sizeof(why));
		int err, lock = -1;

		add_why(all, sizeof(all), why);
		if (dir < 0)
			continue;
		err = snprintf(path_ret, PATH_MAX, "%s/%s", place, image->name) < PATH_MAX ? 0 : -ENAMETOOLONG;
		if (!err)
			lock = take_lock(dir, image->name);
		if (lock >= 0)
			err = have_copy(image, path_ret);
		else if (!err)
			err = lock;
		if (lock >= 0)
			close(lock);
		close(dir);
		if (!err)
			return 0;
		if (err == -EBADMSG)
			return say_damaged();
		snprintf(why, sizeof(why), "%s: %s", place,
			 err == -ETIMEDOUT ? "another start keeps its lock" : strerror(-err));
		add_why(all, sizeof(all), why);
	}
	return say(
		FAILED,
		"there is no folder to unpack into (%s); set XDG_CACHE_HOME or TMPDIR to a folder of yours where programs "
		"may run, with 40 MB free, or unpack it yourself with --appimage-extract",
		all);
}

/* --- what it can do --- */

static int extract(struct image *image)
{
	const int err = unpack_into(image, "squashfs-root", true);

	if (err == -EEXIST)
		return say(FAILED, "there is a squashfs-root here already; remove it first");
	if (err == -EBADMSG)
		return say_damaged();
	if (err)
		return say(FAILED, "cannot unpack into squashfs-root: %s", strerror(-err));
	return fflush(stdout) ? say(FAILED, "cannot write: %s", strerror(errno)) : 0;
}

/* One of --appimage-*. */
static int run_own(struct image *image, int argc, char **argv)
{
	const char *word = argv[1] + strlen("--appimage-");

	if (argc > 2)
		return say(WRONG_USAGE, "%s takes nothing behind it", argv[1]);
	if (!strcmp(word, "help"))
		return fputs(help, stdout) < 0 || fflush(stdout) ? FAILED : 0;
	if (!strcmp(word, "version"))
		return puts("hearth " HEARTH_VERSION) < 0 || fflush(stdout) ? FAILED : 0;
	if (!strcmp(word, "offset"))
		return printf("%llu\n", (unsigned long long)image->offset) < 0 || fflush(stdout) ? FAILED : 0;
	if (!strcmp(word, "extract"))
		return extract(image);
	if (!strcmp(word, "mount"))
		return say(WRONG_USAGE, "it is never mounted; --appimage-extract unpacks it into squashfs-root");
	return say(WRONG_USAGE, "%s is not known here; --appimage-help tells what is", argv[1]);
}

/* AppRun knows by these where it is from, as AppImages do. */
static int set_variables(const char *folder, const char *argv0)
{
	char self[PATH_MAX] = "", here[PATH_MAX] = "";
	const ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0 || !getcwd(here, sizeof(here)))
		here[0] = '\0';
	return setenv("APPIMAGE", self, 1) || setenv("APPDIR", folder, 1) || setenv("ARGV0", argv0, 1) ||
	       setenv("OWD", here, 1);
}

static int run(struct image *image, int argc, char **argv)
{
	char folder[PATH_MAX], program[PATH_MAX + 16];
	char nothing[] = "hearth";
	int status = find_copy(image, folder);

	if (status)
		return status;
	if (set_variables(folder, argc ? argv[0] : nothing))
		return say(FAILED, "cannot set the environment: %s", strerror(errno));
	snprintf(program, sizeof(program), "%s/AppRun", folder);
	execv(program, argv);
	return say(FAILED, "cannot start %s: %s", program, strerror(errno));
}

int main(int argc, char **argv)
{
	struct image image;
	int status, err = image_open(&image);

	if (argc > 1 && !strcmp(argv[1], "--appimage-extract-and-run")) {
		argv[1] = argv[0];
		argc--;
		argv++;
	}
	if (err == -EBADMSG)
		status = say_damaged();
	else if (err == -ENOEXEC)
		status = say(FAILED, "there is no image behind this program that it can read");
	else if (err)
		status = say(FAILED, "cannot read this AppImage: %s; is /proc mounted?", strerror(-err));
	else if (argc > 1 && !strncmp(argv[1], "--appimage-", strlen("--appimage-")))
		status = run_own(&image, argc, argv);
	else
		status = run(&image, argc, argv);
	image_close(&image);
	return status;
}
