/* SPDX-License-Identifier: Apache-2.0 */
/* The distributions and functions that judging differences takes. */
#ifndef HEARTH_BASE_STATISTICS_H
#define HEARTH_BASE_STATISTICS_H

/* The part of a normal distribution (of a Student distribution with @freedom > 0 degrees) that lies farther out than @x >= 0
 * to both sides. */
double normal_tails(double x);
double student_tails(double x, double freedom);

/* The @x of which that part is @tails, within (0, 1). */
double normal_quantile(double tails);
double student_quantile(double tails, double freedom);

/* The first and second derivative of the logarithm of the gamma function, x > 0; and where the second is @y > 0. */
double digamma(double x);
double trigamma(double x);
double trigamma_inverse(double y);

#endif
