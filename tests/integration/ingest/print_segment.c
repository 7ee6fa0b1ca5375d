/* print_segment.c - the series of a segment as text, for tests: LABELS TS:VALUE TS:VALUE...
 *
 * usage: print_segment FILE */
#include <inttypes.h>
#include <stdio.h>

#include "segments/parquet/segment_reader.h"

static void print(const struct pq_series *series)
{
    struct qf_strbuf labels = QF_STRBUF_INIT;

    qf_labels_print_series(&labels, series->labels);
    printf("%s", qf_strbuf_cstr(&labels));
    for (size_t i = 0; i < series->count; i++) {
        if (series->histograms && series->histograms[i])
            printf(" %" PRId64 ":h%g", series->ts[i], series->histograms[i]->count);
        else
            printf(" %" PRId64 ":%.17g", series->ts[i], series->values[i]);
    }
    printf("\n");
    qf_strbuf_done(&labels);
}

int main(int argc, char **argv)
{
    const struct pq_select all = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct qf_err err = { 0 };
    struct sg_reader *reader = argc == 2 ? sg_reader_open(argv[1], &err) : NULL;
    struct pq_source *source;
    struct pq_series series;
    bool more;

    if (!reader || sg_reader_verify(reader, &err) != QF_OK) {
        fprintf(stderr, "print_segment: %s\n", argc == 2 ? err.msg : "usage: print_segment FILE");
        return 1;
    }
    printf("generation %" PRIu64 "\n", sg_reader_meta(reader)->name.generation);
    source = sg_source_new(&reader, 1, &all, NULL, 0);
    while (source->next(source, &series, &more, &err) == QF_OK && more)
        print(&series);
    source->close(source);
    (void)sg_reader_free(reader);
    return err.rc == QF_OK ? 0 : 1;
}
