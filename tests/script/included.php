<?php
// SPDX-License-Identifier: Apache-2.0
// Included by calls.php.
$n = 0;
for ($i = 0; $i < 3; $i++)
	$n += \Calls\spin(1);
return $n;
