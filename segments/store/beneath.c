/* beneath.c - open what lies below a folder, following no symbolic link on the way. */
#include "segments/store/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* openat(), and @folder is closed unless it is @root. */
static int step(int root, int folder, const char *part, int flags)
{
    int next = openat(folder, part, flags | O_NOFOLLOW | O_CLOEXEC), error = errno;

    if (folder != root)
        (void)close(folder);
    errno = error;
    return next;
}

int sg_store_open_beneath(int root, const char *path, int flags)
{
    int folder = root;
    const char *slash;
    char part[NAME_MAX + 1];

    while ((slash = strchr(path, '/')) != NULL && slash[1]) {
        size_t len = (size_t)(slash - path);

        if (len > NAME_MAX) {
            if (folder != root)
                (void)close(folder);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(part, path, len);
        part[len] = '\0';
        folder = step(root, folder, part, O_PATH | O_DIRECTORY);
        if (folder < 0)
            return -1;
        path = slash + 1;
    }
    if (!slash)
        return step(root, folder, *path ? path : ".", flags);
    /* "folder/": a slash at the end would follow a link after all */
    if ((size_t)(slash - path) > NAME_MAX) {
        if (folder != root)
            (void)close(folder);
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(part, path, (size_t)(slash - path));
    part[slash - path] = '\0';
    return step(root, folder, part, flags);
}

int sg_store_make_beneath(int root, char *path, int *ret_error)
{
    int folder = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *part = path;

    for (char *slash; folder >= 0 && (slash = strchr(part, '/')); part = slash + 1) {
        int made, next;

        *slash = '\0';
        made = mkdirat(folder, part, 0777) == 0;
        if (!made && errno != EEXIST) {
            next = -1;
        } else if (made && fsync(folder)) {
            next = -1;
        } else {
            next = openat(folder, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        *ret_error = errno;
        (void)close(folder);
        *slash = '/';
        folder = next;
    }
    if (folder < 0 && !*ret_error)
        *ret_error = EIO;
    return folder;
}
