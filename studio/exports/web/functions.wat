;; expf and logf for running the page's engine with wasmtime. A network calls expf for every activation, and a drawn set
;; calls logf for every colour of a pixel, so calls into Python (used for the other functions) would take seconds.
(module
  ;; exp(x) = 2^n * exp(r) with |r| <= ln(2) / 2, where 12 terms of the Taylor series are more precise than a float.
  (func (export "expf") (param $x f32) (result f32)
    (local $y f64) (local $n f64) (local $r f64)
    ;; expf overflows to infinity or 0 beyond 200. min and max preserve NaN.
    (local.set $y (f64.min (f64.const 200) (f64.max (f64.const -200) (f64.promote_f32 (local.get $x)))))
    (local.set $n (f64.nearest (f64.mul (local.get $y) (f64.const 1.4426950408889634))))
    (local.set $r (f64.sub (local.get $y) (f64.mul (local.get $n) (f64.const 0.6931471805599453))))
    f64.const 2.505210838544172e-8
    local.get $r f64.mul f64.const 2.755731922398589e-07 f64.add
    local.get $r f64.mul f64.const 2.7557319223985893e-06 f64.add
    local.get $r f64.mul f64.const 2.48015873015873e-05 f64.add
    local.get $r f64.mul f64.const 0.0001984126984126984 f64.add
    local.get $r f64.mul f64.const 0.001388888888888889 f64.add
    local.get $r f64.mul f64.const 0.008333333333333333 f64.add
    local.get $r f64.mul f64.const 0.041666666666666664 f64.add
    local.get $r f64.mul f64.const 0.16666666666666666 f64.add
    local.get $r f64.mul f64.const 0.5 f64.add
    local.get $r f64.mul f64.const 1.0 f64.add
    local.get $r f64.mul f64.const 1.0 f64.add
    ;; multiply by 2^n, built from the exponent bits of a double
    (i64.shl (i64.add (i64.trunc_sat_f64_s (local.get $n)) (i64.const 1023)) (i64.const 52))
    f64.reinterpret_i64
    f64.mul
    f32.demote_f64)

  ;; log(2^n * m) = n * ln(2) + 2 * atanh(s) with s = (m - 1) / (m + 1), m in [sqrt(1/2), sqrt(2)], |s| < 0.172; the
  ;; terms of the Taylor series up to s^17 are more precise than a float.
  (func (export "logf") (param $x f32) (result f32)
    (local $bits i64) (local $n f64) (local $m f64) (local $s f64) (local $q f64)
    ;; 0 gives -infinity, negative numbers and NaN give NaN, infinity gives infinity.
    (if (f32.eq (local.get $x) (f32.const 0)) (then (return (f32.const -inf))))
    (if (i32.eqz (f32.gt (local.get $x) (f32.const 0))) (then (return (f32.const nan))))
    (if (f32.eq (local.get $x) (f32.const inf)) (then (return (f32.const inf))))
    (local.set $bits (i64.reinterpret_f64 (f64.promote_f32 (local.get $x))))
    (local.set $n (f64.convert_i64_s (i64.sub (i64.shr_u (local.get $bits) (i64.const 52)) (i64.const 1023))))
    (local.set $m (f64.reinterpret_i64
      (i64.or (i64.and (local.get $bits) (i64.const 0x000fffffffffffff)) (i64.const 0x3ff0000000000000))))
    (if (f64.gt (local.get $m) (f64.const 1.4142135623730951)) (then
      (local.set $m (f64.mul (local.get $m) (f64.const 0.5)))
      (local.set $n (f64.add (local.get $n) (f64.const 1)))))
    (local.set $s (f64.div (f64.sub (local.get $m) (f64.const 1)) (f64.add (local.get $m) (f64.const 1))))
    (local.set $q (f64.mul (local.get $s) (local.get $s)))
    f64.const 0.058823529411764705
    local.get $q f64.mul f64.const 0.06666666666666667 f64.add
    local.get $q f64.mul f64.const 0.07692307692307693 f64.add
    local.get $q f64.mul f64.const 0.09090909090909091 f64.add
    local.get $q f64.mul f64.const 0.1111111111111111 f64.add
    local.get $q f64.mul f64.const 0.14285714285714285 f64.add
    local.get $q f64.mul f64.const 0.2 f64.add
    local.get $q f64.mul f64.const 0.3333333333333333 f64.add
    local.get $q f64.mul f64.const 1.0 f64.add
    local.get $s f64.mul f64.const 2 f64.mul
    (f64.mul (local.get $n) (f64.const 0.6931471805599453))
    f64.add
    f32.demote_f64))
