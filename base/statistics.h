/* SPDX-License-Identifier: Apache-2.0 */
/* The distributions and functions for judging differences. */
#ifndef HEARTH_BASE_STATISTICS_H
#define HEARTH_BASE_STATISTICS_H

/* The part of a normal distribution (of a Student distribution with @freedom > 0 degrees) that lies farther out than @x >= 0
 * to both sides. */
double statistics_normal_tails(double x);
double statistics_student_tails(double x, double freedom);

/* The x whose part farther out is @tails, within (0, 1). */
double statistics_normal_quantile(double tails);
double statistics_student_quantile(double tails, double freedom);

/* The first and second derivative of the logarithm of the gamma function, x > 0; and the x where the second is @y > 0. */
double statistics_digamma(double x);
double statistics_trigamma(double x);
double statistics_trigamma_inverse(double y);

#endif
