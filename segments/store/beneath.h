/* beneath.h - open what lies below a folder, following no symbolic link on the way. */
#ifndef SEGMENTS_STORE_BENEATH_H
#define SEGMENTS_STORE_BENEATH_H

/* openat() of @path below @root, part by part: a part that is a symbolic link is ENOTDIR or, at the
 * end, ELOOP. @path is relative, has no ".." and may end in '/'; "" is @root. A link inside of a
 * store would lead to files of another tenant, or of nobody. */
int sg_store_open_beneath(int root, const char *path, int flags);

/* The descriptor of the folder that holds @path below @root; folders on the way that are missing are made, durably. -1 and
 * an errno in @ret_error (0 before). @path is written to meanwhile. */
int sg_store_make_beneath(int root, char *path, int *ret_error);

#endif
