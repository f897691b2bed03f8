/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Student's distribution is computed by the incomplete beta function, as a continued fraction (DLMF 8.17.22, by Lentz's
 * method); quantiles by halving, which is exact enough and cannot fail.
 */
#include "base/statistics.h"

#include <math.h>

double statistics_normal_tails(double x)
{
	return erfc(x / sqrt(2));
}

/* The continued fraction of the incomplete beta function. */
static double beta_fraction(double x, double a, double b)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), h = d;

	for (int m = 1; m < 500; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step;

		d = 1 / fmax(fabs(1 + even * d), tiny);
		c = fmax(fabs(1 + even / c), tiny);
		h *= d * c;
		d = 1 / (1 + odd * d);
		c = 1 + odd / c;
		step = d * c;
		h *= step;
		if (fabs(step - 1) < 1e-14)
			break;
	}
	return h;
}

static double incomplete_beta(double x, double a, double b)
{
	double front;

	if (x <= 0 || x >= 1)
		return x >= 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(x, a, b) / a;
	return 1 - front * beta_fraction(1 - x, b, a) / b;
}

double statistics_student_tails(double x, double freedom)
{
	return incomplete_beta(freedom / (freedom + x * x), freedom / 2, 0.5);
}

/* The x at which @tails, which falls, is @wanted; @freedom 0: of the normal distribution. */
static double quantile(double wanted, double freedom)
{
	double low = 0, high = 1;

	while (high < 1e300 &&
	       (freedom > 0 ? statistics_student_tails(high, freedom) : statistics_normal_tails(high)) > wanted)
		high *= 2;
	for (int i = 0; i < 200; i++) {
		double middle = (low + high) / 2,
		       tails = freedom > 0 ? statistics_student_tails(middle, freedom) : statistics_normal_tails(middle);

		if (tails > wanted)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

double statistics_normal_quantile(double tails)
{
	return quantile(tails, 0);
}

double statistics_student_quantile(double tails, double freedom)
{
	return quantile(tails, freedom);
}

/* Both go up to where the asymptotic series (DLMF 5.11.2 and its derivative) are good to 1e-12, then back. */
double statistics_digamma(double x)
{
	double sum = 0, f;

	for (; x < 10; x++)
		sum -= 1 / x;
	f = 1 / (x * x);
	return sum + log(x) - 1 / (2 * x) - f * (1.0 / 12 - f * (1.0 / 120 - f * (1.0 / 252 - f * (1.0 / 240 - f / 132))));
}

double statistics_trigamma(double x)
{
	double sum = 0, f;

	for (; x < 10; x++)
		sum += 1 / (x * x);
	f = 1 / (x * x);
	return sum + 1 / x + f / 2 + f / x * (1.0 / 6 - f * (1.0 / 30 - f * (1.0 / 42 - f * (1.0 / 30 - f * 5 / 66))));
}

double statistics_trigamma_inverse(double y)
{
	double low = 1e-6, high = 1e6; /* it falls */

	for (int i = 0; i < 200; i++) {
		double middle = sqrt(low * high);

		if (statistics_trigamma(middle) > y)
			low = middle;
		else
			high = middle;
	}
	return low;
}
