;; expf for running the page's engine with wasmtime. A network calls expf for every activation, so calls into Python
;; (used for the other functions) would take seconds per sprite.
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
    f32.demote_f64))
