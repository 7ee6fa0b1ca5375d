/* twofold_pair.h - two numbers of twice the precision at once, each as twofold.h computes it, to the last bit.
 *
 * There are no looks at infinities on the way: they and NaN stay in what is computed from them, and
 * whoever uses it has such numbers computed one by one. */
#ifndef PROMQL_PARTIAL_TWOFOLD_PAIR_H
#define PROMQL_PARTIAL_TWOFOLD_PAIR_H

#include "promql/func/pair.h"
#include "promql/partial/twofold.h"

struct pq_twofold_pair {
    pq_pair high, low;
};

/* What is lost in a product of at least this size is a number itself. */
#define PQ_PRODUCT_MIN 0x1p-960

static inline struct pq_twofold_pair pq_two_sum_pair(pq_pair a, pq_pair b)
{
    pq_pair sum = a + b;

    return (struct pq_twofold_pair){ sum, pq_pair_error(a, b, sum) };
}

static inline struct pq_twofold_pair pq_twofold_pair_add(struct pq_twofold_pair x,
                                                         struct pq_twofold_pair y)
{
    struct pq_twofold_pair high = pq_two_sum_pair(x.high, y.high);
    struct pq_twofold_pair low = pq_two_sum_pair(x.low, y.low);

    high = pq_two_sum_pair(high.high, high.low + low.high);
    return pq_two_sum_pair(high.high, high.low + low.low);
}

/* @value - @x; @value has no low part, so that of @x meets a zero. */
static inline struct pq_twofold_pair pq_twofold_pair_less(pq_pair value, struct pq_twofold_pair x)
{
    struct pq_twofold_pair high = pq_two_sum_pair(value, -x.high);

    high = pq_two_sum_pair(high.high, high.low + (0 - x.low));
    return pq_two_sum_pair(high.high, high.low + 0);
}

/* The upper 26 bits (Veltkamp). */
static inline pq_pair pq_pair_upper(pq_pair a)
{
    pq_pair scaled = a * 0x8000001p0;

    return scaled - (scaled - a);
}

/* What is lost in @product = @a * @b, exactly (Dekker), as fma() gives it. @good loses the halves where
 * the product is too small for that; of factors too large to be cut in two comes NaN. */
static inline pq_pair pq_pair_product_error(pq_pair a, pq_pair b, pq_pair product,
                                            pq_pair_mask *good)
{
    pq_pair a_upper = pq_pair_upper(a), b_upper = pq_pair_upper(b);
    pq_pair a_lower = a - a_upper, b_lower = b - b_upper;
    pq_pair upper = a_upper * b_upper - product;
    pq_pair error = ((upper + a_upper * b_lower) + a_lower * b_upper) + a_lower * b_lower;

    *good &= (product >= PQ_PRODUCT_MIN) | (product <= -PQ_PRODUCT_MIN) | (a == 0) | (b == 0);
    return error + 0; /* a zero is a positive one */
}

static inline struct pq_twofold_pair
pq_twofold_pair_mul(struct pq_twofold_pair x, struct pq_twofold_pair y, pq_pair_mask *good)
{
    pq_pair product = x.high * y.high;
    pq_pair error = pq_pair_product_error(x.high, y.high, product, good);

    return pq_two_sum_pair(product, error + (x.high * y.low + x.low * y.high));
}

static inline struct pq_twofold_pair pq_twofold_pair_div(struct pq_twofold_pair x, pq_pair divisor,
                                                         pq_pair_mask *good)
{
    pq_pair first = x.high / divisor, product = first * divisor;
    pq_pair error = pq_pair_product_error(first, divisor, product, good);
    struct pq_twofold_pair rest =
        pq_twofold_pair_add(x, (struct pq_twofold_pair){ -product, -error });

    return pq_two_sum_pair(first, rest.high / divisor);
}

#endif
