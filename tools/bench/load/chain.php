<?php
// SPDX-License-Identifier: Apache-2.0
// N different functions deep, the file's code included: chain.php N
$depth = (int)$argv[1];

function f1()
{
	for ($x = 1;;)
		$x = ($x * 33) & 0xffff;
}

$code = '';
for ($i = 2; $i < $depth; $i++)
	$code .= "function f$i(\$a = 1) { return f" . ($i - 1) . "(); }\n";
eval($code);
("f" . ($depth - 1))();
