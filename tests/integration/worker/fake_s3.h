/* fake_s3.h - just enough of an object store for tests: GET of files below a folder and of ranges of
 * them, with delays, faults and counts. The bucket is "b". */
#ifndef TESTS_INTEGRATION_WORKER_FAKE_S3_H
#define TESTS_INTEGRATION_WORKER_FAKE_S3_H

struct fake_s3;

/* Serves GET /b/<name> from <folder>/<name>. */
struct fake_s3 *fake_s3_new(const char *folder);
struct fake_s3 *fake_s3_free(struct fake_s3 *s3);
/* For sg_store_open(); lives as long as the server. */
const char *fake_s3_url(const struct fake_s3 *s3);
/* Each request waits this long first. */
void fake_s3_delay(struct fake_s3 *s3, int ms);
/* Those for the name of the store aside. */
unsigned fake_s3_requests(const struct fake_s3 *s3);
unsigned long long fake_s3_bytes(const struct fake_s3 *s3); /* that were answered with */
/* From now on objects have another ETag, which was "x". */
void fake_s3_replace(struct fake_s3 *s3);
/* From now on ranges are not heard of: whoever asks for one gets everything. */
void fake_s3_ignore_ranges(struct fake_s3 *s3);
/* In answers to ranges that hold byte @offset of an object, it is another one; -1: no more. */
void fake_s3_spoil(struct fake_s3 *s3, long long offset);

#endif
