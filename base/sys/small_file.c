/* small_file.c - reading small files. */
#include "base/sys/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static qf_rc read_text(int fd, const char *name, const char *what, size_t bytes_max,
                       struct qf_strbuf *text, struct qf_err *err)
{
    size_t before = text->len;

    for (;;) {
        char bytes[4096];
        ssize_t got = read(fd, bytes, sizeof(bytes));

        if (got == 0)
            return QF_OK;
        if (got < 0 && errno != EINTR)
            return qf_err_set(err, QF_EIO, "cannot read %s in %s: %s", what, name, strerror(errno));
        if (got > 0 && text->len - before + (size_t)got > bytes_max)
            return qf_err_set(err, QF_EINVAL, "%s is larger than %zu bytes", name, bytes_max);
        if (got > 0)
            qf_strbuf_add(text, bytes, (size_t)got);
    }
}

qf_rc qf_small_file_read(const char *name, const char *what, size_t bytes_max,
                         struct qf_strbuf *text, struct stat *ret_seen, struct qf_err *err)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    qf_rc rc;

    if (fd < 0)
        return qf_err_set(err, QF_EIO, "cannot read %s in %s: %s", what, name, strerror(errno));
    if (fstat(fd, ret_seen) != 0 || !S_ISREG(ret_seen->st_mode))
        rc = qf_err_set(err, QF_EIO, "%s in %s: not a file", what, name);
    else
        rc = read_text(fd, name, what, bytes_max, text, err);
    (void)close(fd);
    return rc;
}

bool qf_small_file_changed(const char *name, const struct stat *seen)
{
    struct stat now;

    return stat(name, &now) != 0 || now.st_dev != seen->st_dev || now.st_ino != seen->st_ino ||
           now.st_size != seen->st_size || now.st_mode != seen->st_mode ||
           now.st_mtim.tv_sec != seen->st_mtim.tv_sec ||
           now.st_mtim.tv_nsec != seen->st_mtim.tv_nsec;
}
